// A program that says that it begins, and then makes a key: for tests that kill it meanwhile.
import { openKey } from '../../../core/secrets/key-file.ts'

process.stdout.write('now\n')
await openKey(process.argv[2] ?? '')
