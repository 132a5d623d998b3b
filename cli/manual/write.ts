// Writes the manual page to the file that is named: `node dist/cli/manual/write.js FILE`.
import { writeFile } from 'node:fs/promises'
import { manualPage } from './page.ts'

const [file] = process.argv.slice(2)
if (file === undefined) throw new Error('name the file')
await writeFile(file, manualPage())
