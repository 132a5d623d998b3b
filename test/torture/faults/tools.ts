// A host tool fails, or takes long. All of them are reached through wrappers that come first on PATH (stage/tools.ts) and do as a file says.
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TOOLS } from '../stage/tools.ts'
import type { FaultChoice } from './fault.ts'

function spoil (word: 'fail' | 'slow'): FaultChoice {
  return {
    choose: (random) => {
      const tool = random.pick(TOOLS)
      return {
        text: `${tool} ${word === 'fail' ? 'fails' : 'is slow'}`,
        kind: word === 'fail' ? 'tool' : 'slow tool',
        begin: async ({ stage: { toolOrders } }) => {
          const file = join(toolOrders, tool)
          await writeFile(file, `${word}\n`)
          return async () => { await rm(file, { force: true }) }
        }
      }
    }
  }
}

export const toolFails = spoil('fail')
export const toolIsSlow = spoil('slow')
