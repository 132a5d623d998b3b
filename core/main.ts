#!/usr/bin/env node
// The process: hands the command line to its command and ends with the exit code that comes back.
import { runCommandLine } from './cli/run.ts'
import { processEnvironment } from './config/environment.ts'

const code = await runCommandLine(process.argv.slice(2), {
  environment: processEnvironment(),
  print: line => { process.stdout.write(`${line}\n`) },
  complain: line => { process.stderr.write(`${line}\n`) }
})
// Nothing is left to wait for: what a command opened it has closed, and a plugin that did not stop must not keep the process.
process.exit(code)
