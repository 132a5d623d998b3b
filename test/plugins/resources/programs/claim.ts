// Claims room as a server process of its own does: `claim.js URL HOST VCPUS ID…`. Prints the ids that got some.
import { openDatabase } from '../../../../core/db/open.ts'
import { ClaimRepository } from '../../../../plugins/resources/repository.ts'
import { claimOf, refuseOver } from '../claims.ts'

const [url = '', hostId = '', vcpus = '', ...ids] = process.argv.slice(2)
const database = openDatabase(url)
try {
  const repository = new ClaimRepository(database, hostId)
  await repository.open()
  for (const id of ids) {
    try {
      await repository.claim(claimOf(id), refuseOver(Number(vcpus)))
      process.stdout.write(`${id}\n`)
    } catch (error) {
      if (!(error instanceof Error) || error.message !== 'full') throw error
    }
  }
} finally {
  await database.destroy()
}
