// What nft lists, of what somebody else may have removed.
import { exitedWith } from '../process/errors.ts'

/** What `list` prints; undefined when there is nothing of that name. @param list runs nft, in the network namespace that is meant */
export async function ifListed (list: () => Promise<string>): Promise<string | undefined> {
  try {
    return await list()
  } catch (error) {
    if (exitedWith(error, 1) && error.failure.stderr.includes('No such file or directory')) return undefined
    throw error
  }
}
