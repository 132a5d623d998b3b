// The disk of the data folder, which is a small file system of its own, runs full: its bytes, or its inodes.
import { randomUUID } from 'node:crypto'
import { mkdir, open, rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'
import type { FaultChoice } from './fault.ts'

const PIECE = Buffer.alloc(2 ** 20)
const MOST_FREE = 16 * 2 ** 20

export const fillBytes: FaultChoice = {
  choose: (random) => {
    const free = random.below(MOST_FREE)
    return {
      text: `fill the disk but for ${free} bytes`,
      kind: 'bytes',
      begin: async ({ stage: { disk } }) => {
        const file = join(disk, `filler-${randomUUID()}`)
        const undo = async (): Promise<void> => { await rm(file, { force: true }) }
        const handle = await open(file, 'w')
        try {
          const { bavail, bsize } = await statfs(disk)
          // Whatever runs takes and gives space meanwhile.
          for (let left = bavail * bsize - free; left > 0; left -= PIECE.length) await handle.write(PIECE, 0, Math.min(left, PIECE.length))
        } catch (error) {
          if (!hasCode(error, 'ENOSPC')) throw error
        } finally {
          await handle.close()
        }
        return undo
      }
    }
  }
}

export const fillInodes: FaultChoice = {
  choose: (random) => {
    const free = random.below(20)
    return {
      text: `take all inodes but ${free}`,
      kind: 'inodes',
      begin: async ({ stage: { disk } }) => {
        // Two of them may overlap.
        const folder = join(disk, `fillers-${randomUUID()}`)
        try {
          await mkdir(folder)
          const { ffree } = await statfs(disk)
          for (let count = 0; count < ffree - free; count++) await writeFile(join(folder, String(count)), '')
        } catch (error) {
          // Another one may have left nothing.
          if (!hasCode(error, 'ENOSPC')) throw error
        }
        return async () => { await rm(folder, { recursive: true, force: true }) }
      }
    }
  }
}
