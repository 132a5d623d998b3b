// Where the kernel comes from: Debian's package, or the operator's own files. Knows its identity before anything is fetched.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { KernelUnavailable } from '../errors.ts'
import { downloadKernel, unpackKernel, type UnpackedKernel } from './kernel-package.ts'
import { knownPackage } from './known-package.ts'

export interface KernelSource {
  /** the same for the same kernel and modules */
  readonly identity: string
  /** the beginning of the system's name */
  readonly version: string
  /** Puts the files in place; `scratch` is removed afterwards. */
  unpack (scratch: string, signal: AbortSignal): Promise<UnpackedKernel>
}

export async function packagedKernel (commands: HostCommands, name: string, cache: string, signal: AbortSignal): Promise<KernelSource> {
  const found = await knownPackage(commands, name, cache, signal)
  return {
    identity: `${found.name}=${found.version}`,
    version: found.version,
    async unpack (scratch, unpackSignal) {
      const files = await downloadKernel(commands, found, cache, unpackSignal)
      return await unpackKernel(commands, files, join(scratch, 'package'), unpackSignal)
    }
  }
}

export async function ownKernel (kernelPath: string, modulesPath: string): Promise<KernelSource> {
  const hash = createHash('sha256')
  try {
    // Not by a pipeline: it would end the hash with the stream, and Node 24 then refuses further data.
    for await (const chunk of createReadStream(kernelPath)) hash.update(chunk)
    // This file stands for the modules: it changes with each build of them, and reading them all would take long.
    hash.update(modulesPath).update(await readFile(join(modulesPath, 'modules.builtin')))
  } catch (error) {
    throw KernelUnavailable.from(error, error instanceof Error ? error.message : String(error))
  }
  const identity = hash.digest('hex')
  return { identity: `own=${identity}`, version: 'own', unpack: () => Promise.resolve({ image: kernelPath, modules: modulesPath }) }
}
