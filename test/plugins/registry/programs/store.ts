// Starts a store in the folder of the first argument, says so in a line, and stays.
import pino from 'pino'
import { createProcessRegister } from '../../../../core/process/register.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import { Store } from '../../../../plugins/registry/store.ts'

const [, , folder = ''] = process.argv
const store = new Store({ folder, log: pino({ level: 'silent' }), commands: createHostCommands(), processes: createProcessRegister() })
await store.start(new AbortController().signal)
console.log('up')
