// node dist/test/core/db/programs/keep-schemas.js: keeps the schema of each migration that has none kept yet in test/core/db/schemas/. Those that are there stay as they are.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../../../core/db/open.ts'
import { allSchemas, dumpOf, keptFile, makeVersion, readKept } from '../schemas.ts'

const folder = await mkdtemp(join(tmpdir(), 'berth-schemas-'))
try {
  for (const schema of await allSchemas()) {
    for (let count = 1; count <= schema.names.length; count++) {
      if (await readKept(schema, count) !== undefined) continue
      const database = openDatabase(`sqlite:${join(folder, `${schema.id}-${count}.db`)}`)
      await makeVersion(database, schema, count, join(folder, `${schema.id}-${count}`))
      await writeFile(keptFile(schema, count), await dumpOf(database))
      await database.destroy()
      console.log(keptFile(schema, count))
    }
  }
} finally {
  await rm(folder, { recursive: true })
}
