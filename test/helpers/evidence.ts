// What a server and its VMs had to say, for the output of a test that failed: their files go when the test ends.
import { open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'

const WARNINGS = 20
const LAST_LINES = 15
const CONSOLE_LINES = 25
/** A console may be endless. */
const READ_BYTES = 16 * 1024
const SHOWN_VMS = 4

/** The end of the server's log, of the consoles of its latest VMs and of what their VMMs and operations logged. Never throws: it explains another failure. */
export async function evidence (logFile: string, dataDir: string): Promise<string> {
  try {
    return [...await ofServer(logFile), ...await ofVms(join(dataDir, 'instances'))].join('\n')
  } catch (error) {
    return `(the server's log and consoles could not be read: ${String(error)})`
  }
}

/** The same for a VM without a server, from the logs in its folder. */
export async function evidenceOfVm (folder: string, name: string): Promise<string> {
  return (await ofVm(folder, name)).lines.join('\n')
}

async function ofServer (logFile: string): Promise<string[]> {
  const lines = (await readFile(logFile, 'utf8')).trimEnd().split('\n')
  const warnings = lines.filter((line) => !/^\{"level":"(?:trace|debug|info)"/.test(line)).slice(-WARNINGS)
  return [
    '--- the last of the server\'s warnings, and of what it printed besides:', ...warnings,
    '--- the last lines of the server\'s log:', ...lines.slice(-LAST_LINES)
  ]
}

async function ofVms (folder: string): Promise<string[]> {
  const folders = (await orElse(readdir(folder, { withFileTypes: true }), [])).filter((entry) => entry.isDirectory())
  const vms = await Promise.all(folders.map(async ({ name }) => await ofVm(join(folder, name), name)))
  const latest = vms.sort((a, b) => b.time - a.time)
  const left = latest.slice(SHOWN_VMS).length
  return [...latest.slice(0, SHOWN_VMS).flatMap(({ lines }) => lines), ...left > 0 ? [`(${left} more VMs)`] : []]
}

async function ofVm (folder: string, id: string): Promise<{ time: number, lines: string[] }> {
  const logs = (await orElse(readdir(folder, { recursive: true }), [])).filter((name) => name.endsWith('.log')).sort()
  const read = await Promise.all(logs.map(async (name) => ({ name, ...await endOf(join(folder, name)) })))
  const lines = read.flatMap(({ name, text }) => [`--- VM ${id}, the end of ${name}:`, ...text.trimEnd().split('\n').slice(-CONSOLE_LINES)])
  return { time: Math.max(0, ...read.map(({ time }) => time)), lines }
}

async function endOf (file: string): Promise<{ time: number, text: string }> {
  const handle = await orElse(open(file, 'r'), undefined)
  if (handle === undefined) return { time: 0, text: '' }
  try {
    const { size, mtimeMs } = await handle.stat()
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(READ_BYTES), 0, READ_BYTES, Math.max(0, size - READ_BYTES))
    return { time: mtimeMs, text: buffer.toString('utf8', 0, bytesRead) }
  } finally {
    await handle.close()
  }
}

/** What is looked at may go meanwhile. */
async function orElse<T> (reading: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await reading
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return otherwise
    throw error
  }
}
