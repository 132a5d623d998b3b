// What the API says about a path in the guest.
import type { GuestLink, PathOptions } from '../../guest/contract.ts'
import { isRefusal } from '../guest/guest-errors.ts'
import type { PathInfo } from './schemas.ts'

/** A path that the guest cannot look at is shown as one that does not exist, with the reason. */
export async function pathInfo (link: GuestLink, path: string, options: PathOptions): Promise<PathInfo> {
  try {
    const facts = await link.stat(path, options)
    if (!facts.exists) return { exists: false }
    return {
      exists: true,
      is_file: facts.type === 'file',
      is_dir: facts.type === 'dir',
      is_symlink: facts.type === 'symlink',
      ...(facts.linkTarget === undefined ? {} : { link_target: facts.linkTarget }),
      ...(facts.mode === undefined ? {} : { mode: facts.mode }),
      ...(facts.sizeBytes === undefined ? {} : { size: facts.sizeBytes })
    }
  } catch (error) {
    if (!isRefusal(error)) throw error
    return { exists: false, error: error.message }
  }
}
