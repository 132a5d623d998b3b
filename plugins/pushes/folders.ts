// The working folders of pushes. They contain logins, so only the server may read them, and each is removed with its push.
import { chmod, mkdir, mkdtemp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '../../core/fs/durable.ts'

export interface Folders {
  /** Makes the parent folder, and removes what a crash has left in it. */
  open (): Promise<void>
  /** Runs `work` with a private folder, which is removed afterwards. */
  using<T> (work: (folder: string) => Promise<T>): Promise<T>
}

export function createFolders (root: string): Folders {
  return {
    async open () {
      await mkdir(root, { recursive: true, mode: 0o700 })
      await chmod(root, 0o700)
      for (const name of await readdir(root)) if (name.startsWith('tmp-')) await removeTree(join(root, name))
    },
    async using (work) {
      const folder = await mkdtemp(join(root, 'tmp-'))
      try {
        return await work(folder)
      } finally {
        await removeTree(folder)
      }
    }
  }
}
