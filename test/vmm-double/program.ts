// A double as a program that a driver can be told to start.
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface DoubleProgram {
  /** a path for a driver's `binary` */
  readonly path: string
  /** a file that any user may open, in the place of /dev/kvm */
  readonly kvm: string
  remove (): Promise<void>
}

export type DoubleName = 'firecracker' | 'cloud-hypervisor' | 'vfkit'

/** @param name of the compiled file here @param environment of the program */
export async function doubleProgram (name: DoubleName, environment: Readonly<Record<string, string>> = {}): Promise<DoubleProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-double-'))
  await chmod(folder, 0o755)
  const path = join(folder, name)
  const variables = Object.entries(environment).map(([key, value]) => `${key}='${value}' `).join('')
  await writeFile(path, `#!/bin/sh\nexec env ${variables}'${process.execPath}' '${fileURLToPath(new URL(`${name}.js`, import.meta.url))}' "$@"\n`, { mode: 0o755 })
  const kvm = join(folder, 'kvm')
  await writeFile(kvm, '', { mode: 0o666 })
  await chmod(kvm, 0o666)
  return { path, kvm, remove: () => rm(folder, { recursive: true, force: true }) }
}
