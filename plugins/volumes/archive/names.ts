// Checks which names and link targets of an archive stay inside of the folder that it is unpacked into. Pure.
import { ArchiveInvalid } from '../errors.ts'
import { printable } from './tar.ts'

const MAX_PATH_BYTES = 4095
const MAX_NAME_BYTES = 255
const MAX_DEPTH = 128

/** The parts of a name below the root; empty for the root itself. @throws invalid_archive */
export function partsOf (path: string, what = 'name'): string[] {
  if (path.startsWith('/')) throw ArchiveInvalid(`the ${what} ${printable(path)} is absolute`)
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  if (parts.includes('..')) throw ArchiveInvalid(`the ${what} ${printable(path)} leads out of its folder`)
  if (Buffer.byteLength(path) > MAX_PATH_BYTES || parts.length > MAX_DEPTH || parts.some((part) => Buffer.byteLength(part) > MAX_NAME_BYTES)) {
    throw ArchiveInvalid(`the ${what} ${printable(path)} is too long or too deep`)
  }
  return parts
}

/**
 * @param depth how many folders below the root the link is
 * @throws invalid_archive unless the target is inside of the volume, wherever other links lead: it may go up only at its beginning, from the link's own folder
 */
export function checkTarget (path: string, target: string, depth: number): void {
  const refuse = (why: string): Error => ArchiveInvalid(`the symbolic link ${printable(path)} ${why}`)
  if (target === '' || Buffer.byteLength(target) > MAX_PATH_BYTES) throw refuse('has no target, or too long a one')
  if (target.startsWith('/')) throw refuse(`leads out of the volume, to ${printable(target)}`)
  const parts = target.split('/').filter((part) => part !== '' && part !== '.')
  const ups = parts.findIndex((part) => part !== '..')
  const leading = ups < 0 ? parts.length : ups
  if (leading > depth || parts.slice(leading).includes('..')) throw refuse(`leads out of the volume, to ${printable(target)}`)
}
