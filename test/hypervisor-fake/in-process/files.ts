// What a VMM without a process cannot find out by opening files: whether it could, and who else uses them.
import { access, stat } from 'node:fs/promises'
import type { VmDisk, VmSpec } from '../../../core/library/hypervisor.ts'
import { MemoryInUse, SpecInvalid } from '../../../core/library/vmm/errors.ts'
import type { Host } from './host.ts'
import type { Machine } from './machine.ts'

const DISK_ID = /^[a-z0-9-]{1,20}$/
const LAST_UNIT = 63
const READ_BY_OTHERS = 0o004

/** Throws unless the VM's user may open the file. */
export async function checkOpens<M extends Machine> (host: Host<M>, { identity }: Pick<VmSpec, 'identity'>, path: string): Promise<void> {
  if (host.isImaginary?.(path) === true) return
  await access(path)
  const { uid, mode } = await stat(path)
  if (identity !== undefined && uid !== identity.uid && (mode & READ_BY_OTHERS) === 0) throw new Error(`EACCES: the VM's user cannot open ${path}`)
}

/** Throws for a disk that the VM cannot be given while it runs. */
export async function checkPlugs<M extends Machine> (host: Host<M>, vm: M, { id, path, readonly, unit }: VmDisk): Promise<void> {
  if (unit === undefined || !Number.isInteger(unit) || unit < 0 || unit > LAST_UNIT) throw SpecInvalid(`the disk "${id}" has no place`)
  if (!DISK_ID.test(id)) throw SpecInvalid(`"${id}" is no name of a disk`)
  if ([...vm.plugged.values()].some((other) => other.unit === unit)) throw SpecInvalid(`the place ${unit} is taken`)
  await checkOpens(host, vm.spec, path)
  const isHeld = host.vms.some((other) => other !== vm && other.state.status !== 'gone' && [...other.plugged.values()].some((disk) => disk.path === path && !(readonly && disk.readonly)))
  if (isHeld) throw SpecInvalid(`another VM uses ${path}`)
}

/** One writer or many readers, as long as their VMs live. Returns what the file is known by. */
export async function lockMemory<M extends Machine> (host: Host<M>, { memory, identity }: Pick<VmSpec, 'memory' | 'identity'>): Promise<string | undefined> {
  if (memory === undefined) return undefined
  const { path, sharing } = memory
  const { dev, ino, nlink, mode } = await stat(path)
  if (sharing === 'shared' && nlink !== 1) throw SpecInvalid(`the memory file ${path} would be written, and has ${nlink} names`)
  if (sharing === 'private' && identity !== undefined && (mode & 0o777) !== 0o444) throw new Error(`EACCES: ${path} must be readable to the VM's user, and writable to nobody`)
  const inode = `${dev}:${ino}`
  const users: M[] = []
  for (const vm of host.vms) if (vm.state.status !== 'gone' && vm.memoryInode === inode && await hasItsFile(vm)) users.push(vm)
  if (users.some(({ spec }) => sharing === 'shared' || spec.memory?.sharing === 'shared')) throw MemoryInUse(path)
  return inode
}

/** A real VMM keeps its file from being made anew under the same number; that of this one may be gone. */
async function hasItsFile ({ spec: { memory }, memoryInode }: Machine): Promise<boolean> {
  const found = memory === undefined ? undefined : await stat(memory.path).catch(() => undefined)
  return found !== undefined && `${found.dev}:${found.ino}` === memoryInode
}
