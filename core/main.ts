#!/usr/bin/env node
// The process: runs the command of the command line and exits with its exit code.
import { runCommandLine } from './cli/run.ts'
import { processEnvironment } from './config/environment.ts'

const code = await runCommandLine(process.argv.slice(2), {
  environment: processEnvironment(),
  print: line => { process.stdout.write(`${line}\n`) },
  complain: line => { process.stderr.write(`${line}\n`) }
})
// Nothing is left to wait for: a command closes what it opened, and a plugin that did not stop must not keep the process alive.
process.exit(code)
