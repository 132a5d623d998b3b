// A VMM that was upgraded while the server runs starts in another version than was probed. What its memory images say of it must be what runs, or a later server refuses them.
import { LaunchFailed } from './errors.ts'

class OtherVersion extends Error {
  override readonly name = 'OtherVersion'
  readonly version: string

  constructor (version: string) {
    super(`its VMM runs in version ${version}`)
    this.version = version
  }
}

/** Ends a launch that was prepared for another version than runs. @param running as the VMM says; undefined: it does not */
export function checkVersion (running: string | undefined, { vmmVersion }: { readonly vmmVersion: string }): void {
  if (running !== undefined && running !== vmmVersion) throw new OtherVersion(running)
}

/** Launches a VM, and once more for the version that runs when that is another one. @param prepare anew for each of both @param forget what was probed */
export async function inItsVersion<O extends { readonly vmmVersion: string }, T> (prepare: () => Promise<O>, forget: (running: string) => void, launch: (options: O) => Promise<T>): Promise<T> {
  try {
    return await launch(await prepare())
  } catch (error) {
    if (!(error instanceof OtherVersion)) throw error
    forget(error.version)
    return await launch({ ...await prepare(), vmmVersion: error.version }).catch((failure: unknown) => {
      throw failure instanceof OtherVersion ? LaunchFailed.from(failure, `${failure.message}, and a moment before ran in ${error.version}`) : failure
    })
  }
}
