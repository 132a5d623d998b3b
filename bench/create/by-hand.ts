// The other side of the create benchmark: the command line of a real machine, started by hand on disks of its own, with
// nothing around it but the first exchange of the guest protocol.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pino from 'pino'
import { hasCode } from '../../core/errors/system-code.ts'
import type { HostCommands } from '../../core/contracts/services.ts'
import type { Workload } from '../../plugins/guest/contract.ts'
import { StreamLink } from '../../plugins/guest/link/link.ts'
import { makeFiles } from '../../plugins/instances/files.ts'
import { pathsOf } from '../../plugins/instances/paths.ts'
import { processesIn } from '../../setup/server/leftovers.ts'

/** A command line, and the folder of the instance that it was made for. */
export interface CommandLine { readonly argv: readonly string[], readonly directory: string }

/** The command line of the VMM that runs an instance. */
export async function commandLineOf (dataDir: string, id: string): Promise<CommandLine> {
  const { directory } = pathsOf(dataDir, id)
  const [vmm] = (await processesIn(directory)).filter(({ command }) => command.includes('qemu-system'))
  if (vmm === undefined) throw new Error('the instance has no VMM process')
  const argv = (await readFile(`/proc/${vmm.pid}/cmdline`, 'utf8')).split('\0').slice(0, -1)
  return { argv, directory }
}

export interface Attempt {
  readonly commands: HostCommands
  /** a folder for the instances made by hand, and the name of this one */
  readonly dataDir: string
  readonly id: string
  readonly line: CommandLine
  readonly workload: Workload
  readonly overlayBytes: number
  readonly firstLine: string
}

/** Milliseconds from the start of the VMM to the program's first line. The disks are made before. */
export async function startByHand (attempt: Attempt): Promise<number> {
  const { line, workload, firstLine } = attempt
  const paths = pathsOf(attempt.dataDir, attempt.id)
  await mkdir(join(attempt.dataDir, 'instances'), { recursive: true })
  await makeFiles(paths, attempt.overlayBytes, undefined, attempt.commands)
  const cwd = join(paths.directory, 'qemu')
  await mkdir(cwd)
  const [file, ...args] = line.argv.map(arg => arg.replaceAll(line.directory, paths.directory))
  if (file === undefined) throw new Error('the command line is empty')
  const seen = outputWith(paths.output, firstLine)
  const started = performance.now()
  const vmm = spawn(file, args, { cwd, stdio: 'ignore' })
  const ended = once(vmm, 'exit')
  const socket = await connected(join(cwd, 'agent.sock'))
  const link = new StreamLink(socket, { log: pino({ level: 'silent' }), answerTimeoutMs: 120_000 })
  await Promise.all([link.run(workload), seen])
  const elapsed = performance.now() - started
  link.close()
  vmm.kill('SIGKILL')
  await ended
  await rm(paths.directory, { recursive: true, force: true })
  return elapsed
}

/** Resolves when the file holds the line. */
async function outputWith (path: string, line: string): Promise<void> {
  const changes = watch(path)
  try {
    while (!(await readFile(path, 'utf8')).includes(line)) await once(changes, 'change')
  } finally {
    changes.close()
  }
}

/** Connects as soon as the VMM listens, which nothing announces. */
async function connected (path: string): Promise<Socket> {
  for (let attempt = 0; attempt < 5000; attempt++) {
    const socket = connect({ path })
    try {
      await once(socket, 'connect')
      return socket
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ECONNREFUSED')) throw error
      await delay(2)
    }
  }
  throw new Error('the VMM did not open its socket')
}
