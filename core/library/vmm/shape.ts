// What a VM must have in common with a memory image to be restored from it, as a list of parts, their key, and their comparison.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { MemoryImage } from '../hypervisor.ts'
import { ImageIncompatible } from './errors.ts'

export type Shape = MemoryImage['shape']

/** One short text for a shape and the arguments with which the kernel in the image was booted. */
export function keyOf (shape: Shape, kernelArguments: readonly string[]): string {
  return digest([...Object.entries(shape).map((pair) => pair.join('=')), ...kernelArguments])
}

/** Throws `ImageIncompatible` with every difference. @param by the driver that is to use the image, and its version of images */
export function checkImage (image: MemoryImage, by: Pick<MemoryImage, 'driver' | 'version'>, shape: Shape): void {
  if (image.driver !== by.driver || image.version !== by.version) throw ImageIncompatible(`it was made by the driver ${image.driver}, version ${image.version}, and not by ${by.driver}, version ${by.version}`)
  const names = new Set([...Object.keys(image.shape), ...Object.keys(shape)])
  const differences = [...names].filter((name) => image.shape[name] !== shape[name])
  if (differences.length === 0) return
  throw ImageIncompatible(differences.map((name) => `its ${name} is "${image.shape[name] ?? 'none'}", the VM's is "${shape[name] ?? 'none'}"`).join('; '))
}

/** The host's processor, as far as a guest can tell one kind from another. */
export async function hostCpu (): Promise<string> {
  const lines = (await readFile('/proc/cpuinfo', 'utf8')).split('\n')
  const of = (name: string): string => lines.find((line) => line.startsWith(name)) ?? ''
  return digest([of('vendor_id'), of('model\t'), of('stepping'), of('flags')])
}

/** Short, and the same for the same parts. */
export function digest (parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 16)
}
