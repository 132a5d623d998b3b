// Allocates addresses as a server process of its own does: `allocate.js URL HOST ID…`.
import { openDatabase } from '../../../../core/db/open.ts'
import { parseCidr } from '../../../../plugins/networking/cidr.ts'
import { AddressRepository } from '../../../../plugins/networking/repository.ts'

const [url = '', hostId = '', ...ids] = process.argv.slice(2)
const database = openDatabase(url)
try {
  const repository = new AddressRepository(database, hostId, parseCidr('10.100.0.0/16'))
  await repository.open()
  for (const id of ids) await repository.allocate(id)
} finally {
  await database.destroy()
}
