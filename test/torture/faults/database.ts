// The database server hangs, as a machine that has lost its disk does.
import type { FaultChoice } from './fault.ts'

export const databaseHangs: FaultChoice = {
  needsDatabaseServer: true,
  choose: () => ({
    text: 'the database hangs',
    kind: 'database',
    begin: async ({ stage: { database } }) => {
      const resume = await database.hang?.()
      return async () => { resume?.() }
    }
  })
}
