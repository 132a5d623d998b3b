// `npm run quickstart`: a private server, an image, a machine, its output; at the end everything is removed.
import { mkdtemp, readdir, readFile, rmdir, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { clean } from '../../core/clean-text.ts'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { ApiError, createApi } from '../server/api.ts'
import { processesIn } from '../server/leftovers.ts'
import { lastLogLines, removeServerFolder, startServer, type ServerProcess } from '../server/process.ts'
import { pushDemoImage } from './demo-image.ts'
import { runDemo, runMachine } from './machine.ts'
import { HostLacks, requirePlugins } from './obstacle.ts'
import { parseOptions, type QuickstartOptions } from './options.ts'
import { makeRunsFolder, runsFolder, runsIn } from './runs-folder.ts'
import { writeShellFile } from './shell-file.ts'

/** Stops the servers that `--keep` left, and removes their folders. */
async function stopKept (run: string | undefined): Promise<number> {
  const runs = runsFolder()
  const folders = (await runsIn(runs)).filter(name => run === undefined || name === run)
  for (const name of folders) {
    const folder = join(runs, name)
    await endKeptServer(folder)
    await removeServerFolder(folder)
    console.log(`removed ${shown(folder)}`)
  }
  if (folders.length === 0) console.log('no server is kept')
  await removeIfEmpty(runs)
  return 0
}

/** Asks the server in `folder` to end, if the process is still the same, and waits until it has. */
async function endKeptServer (folder: string): Promise<void> {
  const file = join(folder, 'pid')
  if (!existsSync(file)) return
  const pid = Number(await readFile(file, 'utf8'))
  const isSame = async (): Promise<boolean> => (await processesIn(folder)).some(leftover => leftover.pid === pid)
  if (!await isSame()) return
  process.kill(pid, 'SIGTERM')
  const deadline = Date.now() + 60_000
  // Not a child of this process, so its end has to be polled.
  while (await isSame() && Date.now() < deadline) await new Promise(resolve => setTimeout(resolve, 50))
}

/** A path in the form in which it is typed in the checkout. */
function shown (path: string): string {
  return path.startsWith(`${packageRoot}/`) ? relative(packageRoot, path) : path
}

async function removeIfEmpty (folder: string): Promise<void> {
  if (existsSync(folder) && (await readdir(folder)).length === 0) await rmdir(folder)
}

/** Prints how long a step took. */
async function timed<T> (work: Promise<T>, done: (result: T) => string): Promise<T> {
  const began = performance.now()
  const result = await work
  console.log(`${done(result)} (${((performance.now() - began) / 1000).toFixed(1)} s)`)
  return result
}

async function boot (server: ServerProcess, options: QuickstartOptions): Promise<void> {
  const api = createApi(server.url, server.key)
  await requirePlugins(api)
  const show = (line: string): void => console.log(`  | ${line}`)
  if (options.image === undefined) {
    const image = await timed(pushDemoImage(createHostCommands(), server.folder, new URL(server.url).host, server.key), (name) => `pushed ${name}`)
    console.log('booting it as a virtual machine (waits for the guest\'s system: a kernel package on the first run), which says:')
    await timed(runDemo(api, image, show), () => 'the machine ended with exit code 7, as it was told to')
    return
  }
  console.log(`pulling ${options.image} and booting it as a virtual machine, which says:`)
  const report = await runMachine(api, { image: options.image, ...(options.command.length > 0 ? { command: options.command } : {}) }, show)
  if (report.isServing) console.log('the machine was still running after a minute, so it was ended')
  else console.log(`the machine ended with exit code ${String(report.exitCode)} (${clean(report.exitMessage)})`)
}

/** Whether the message is sufficient: the host lacks something. Otherwise the server's log has the cause. */
function saysAll (error: unknown): boolean {
  return error instanceof HostLacks || (error instanceof ApiError && error.status === 503)
}

async function keep (server: ServerProcess): Promise<void> {
  await writeFile(join(server.folder, 'pid'), String(server.pid))
  const file = await writeShellFile(server.folder, server)
  console.log(`
The server keeps running (process ${server.pid}).
  address  ${server.url}     documentation: ${server.url}/docs
  key      ${server.key}
  log      ${shown(server.logFile)}
Use it, by the command or by HTTP:
  . ${shown(file)}
  berth ps
  curl -H 'Authorization: Bearer ${server.key}' ${server.url}/images
Stop it and remove everything:
  npm run quickstart -- --stop ${basename(server.folder)}`)
}

async function quickstart (options: QuickstartOptions): Promise<number> {
  const started = Date.now()
  const runs = runsFolder()
  await makeRunsFolder(runs)
  const folder = await mkdtemp(join(runs, 'run-'))
  const interrupt = new AbortController()
  const stopped = new Promise<never>((_resolve, reject) => { interrupt.signal.addEventListener('abort', () => reject(new Error('interrupted'))) })
  // The rejection may come before anything waits for it.
  stopped.catch(() => undefined)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupt.abort())
  let server: ServerProcess | undefined
  try {
    server = await timed(startServer({ folder, signal: interrupt.signal, detached: options.keep }), ({ url }) => `server at ${url}`)
    await Promise.race([boot(server, options), stopped])
    if (options.keep) {
      await keep(server)
      return 0
    }
  } catch (error) {
    console.error(`quickstart failed: ${error instanceof Error ? error.message : String(error)}`)
    if (server !== undefined && !interrupt.signal.aborted && !saysAll(error)) console.error(`the server's last log lines:\n${await lastLogLines(server.logFile, 15)}`)
    await server?.stop()
    await removeServerFolder(folder)
    await removeIfEmpty(runs)
    return interrupt.signal.aborted ? 130 : 1
  }
  await server.stop()
  const left = await removeServerFolder(folder)
  await removeIfEmpty(runs)
  if (left.length > 0) {
    console.error(`quickstart failed: the server left behind ${left.join(', ')}`)
    return 1
  }
  console.log(`all removed; ${((Date.now() - started) / 1000).toFixed(1)} s`)
  return 0
}

async function main (args: readonly string[]): Promise<number> {
  const options = parseOptions(args)
  return options.stop ? await stopKept(options.run) : await quickstart(options)
}

// Ends the process by name, so that a stream that is still open cannot hold it.
process.exit(await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error))
  return 1
}))
