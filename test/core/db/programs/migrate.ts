// One of several servers that start at the same time: migrates `some-plugin` on the database given first from the folder given second.
import { migratePlugin } from '../../../../core/db/migrate.ts'
import { openDatabase } from '../../../../core/db/open.ts'

const [url = '', folder = ''] = process.argv.slice(2)
const database = openDatabase(url)
await migratePlugin(database, 'some-plugin', new URL(folder))
await database.destroy()
