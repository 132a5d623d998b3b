// Installs the services, or upgrades them in place: new files first, then a restart. When a step fails, or a signal ends it, everything is undone; when it is killed, the next one does that (journal.ts).
import { readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createUndo, type Undo } from '../../core/undo.ts'
import { isThere } from '../../core/fs/is-there.ts'
import { version } from '../../core/version.ts'
import { isSameTree } from './copy.ts'
import { configFiles, systemFiles, unitsOf } from './files.ts'
import { removeAsides, removeJournal, writeJournal, type Journal } from './journal.ts'
import { freshOf, makeFolders, missingFolders, placeFile, removeFolders, setAside } from './place.ts'
import { CONFIG_FOLDER, DATA_FOLDERS, PROGRAM, PROXY, RUN_FOLDER, SERVER, SERVER_CONFIG, USER } from './places.ts'
import { readRecord, type InstallRecord } from './record.ts'
import { stageProgram } from './stage.ts'
import { SERVICES, type System } from './system.ts'
import { digestOf, settleCutOff, takeBack } from './take-back.ts'
import { writtenSetting } from './written-setting.ts'

export interface InstallOptions {
  /** folder that stands for `/` */
  readonly root: string
  readonly node: string
  /** systemd of this system; absent when only files are wanted */
  readonly system: System | undefined
  /** ends the installation, which takes everything back */
  readonly signal?: AbortSignal
  readonly say: (line: string) => void
}

/** What is known before the first change. */
interface Start {
  readonly before: InstallRecord | undefined
  readonly journal: Journal
  /** An earlier installation was cut off: which version runs, and with which settings, is unknown. */
  readonly isUnknown: boolean
}

interface Changes {
  readonly program: boolean
  /** paths of files outside the program that are new, changed, or removed */
  readonly files: readonly string[]
  /** paths of all that are in place now */
  readonly inPlace: readonly string[]
}

/** Which steps with systemd were done. */
interface Steps {
  isReloaded: boolean
  readonly restarted: string[]
}

/** @returns whether anything was changed */
export async function install (options: InstallOptions): Promise<boolean> {
  const { root, system, signal, say } = options
  await system?.check()
  await checkServerConfig(root)
  const start = await prepare(options)
  const { journal, isUnknown } = start
  const steps: Steps = isUnknown ? { isReloaded: true, restarted: [...SERVICES] } : { isReloaded: false, restarted: [] }
  const undo = createUndo()
  // Added first, so that they run last: when the old files are back.
  if (system !== undefined) addWayBack(undo, system, steps, root, start)
  undo.add(async () => { await takeBack(root, system, journal) })
  let isChanged: boolean
  try {
    await removeAsides(root, journal)
    await writeJournal(root, journal)
    const changes = await placeAll(options, start)
    isChanged = changes.program || changes.files.length > 0 || isUnknown
    signal?.throwIfAborted()
    if (system !== undefined) await bringUp(system.until(signal), changes, start, steps, say)
    signal?.throwIfAborted()
    await writeJournal(root, { ...journal, isDone: true })
  } catch (error) {
    say(signal?.aborted === true ? 'interrupted: everything goes back to what it was' : 'a step failed: everything goes back to what it was')
    const failures = await undo.run()
    for (const failure of failures) say(`and that failed too: ${failure instanceof Error ? failure.message : String(failure)}`)
    // Otherwise the next installation goes on with it.
    if (failures.length === 0) await forget(root, journal)
    signal?.throwIfAborted()
    throw error
  }
  await removeAsides(root, journal)
  await removeJournal(root)
  say(isChanged ? `Berth ${version} is installed` : `Berth ${version} was installed already: nothing changed`)
  return isChanged
}

/** Takes back what was cut off, and finds out what there is. */
async function prepare ({ root, system, say }: InstallOptions): Promise<Start> {
  const cutOff = await settleCutOff(root, system, say)
  const before = await readRecord(root)
  const [files, configs] = [await systemFiles(), configFiles()]
  const [replaced, added]: [string[], string[]] = [[], []]
  for (const path of new Set([PROGRAM, ...files.map(file => file.path), ...before?.files ?? []])) (await isThere(join(root, path)) ? replaced : added).push(path)
  const fresh: Record<string, string> = {}
  for (const { path, from } of configs) if ('file' in from && !await isThere(join(root, path))) fresh[path] = digestOf(await readFile(from.file))
  // One that holds the journal is there still.
  const folders = [...new Set([...cutOff?.folders ?? [], ...await missingFolders(root, [PROGRAM, ...[...files, ...configs].map(({ path }) => path)])])]
  const newestCopy = cutOff === undefined ? await newestCopyBefore(root, system, before) : cutOff.newestCopy
  const journal: Journal = {
    isDone: false, replaced, added, configs: fresh, folders,
    ...system === undefined || before !== undefined ? {} : { first: { folders: await missingData(root), makesUser: !await system.hasUser(USER) } },
    ...newestCopy === undefined ? {} : { newestCopy }
  }
  return { before, journal, isUnknown: cutOff !== undefined }
}

async function missingData (root: string): Promise<string[]> {
  const missing: string[] = []
  for (const folder of [...DATA_FOLDERS, RUN_FOLDER]) if (!await isThere(join(root, folder))) missing.push(folder)
  return missing
}

/** Before the first change: from then on a new server may come up at any time, by a boot of the host as well. */
async function newestCopyBefore (root: string, system: System | undefined, before: InstallRecord | undefined): Promise<number | undefined> {
  if (system === undefined || before === undefined || !await isThere(join(root, SERVER_CONFIG))) return undefined
  return (await system.copies()).at(-1) ?? 0
}

async function placeAll (options: InstallOptions, { before, journal }: Start): Promise<Changes> {
  const { root, say } = options
  const files = await systemFiles()
  await makeFolders(root, journal.folders)
  await writeConfigs(root, journal, say)
  const record: InstallRecord = {
    version,
    files: files.map(({ path }) => path),
    configs: [...new Set([...before?.configs ?? [], ...Object.keys(journal.configs)])],
    folders: [...new Set([...before?.folders ?? [], ...journal.folders])]
  }
  const program = await placeProgram(options, record)
  const changed: string[] = []
  for (const file of files) if (await placeFile(root, file)) changed.push(file.path)
  for (const path of before?.files ?? []) if (!record.files.includes(path) && await setAside(join(root, path))) changed.push(path)
  for (const path of changed) say(`  ${path}`)
  return { program, files: changed, inPlace: record.files }
}

async function writeConfigs (root: string, { configs }: Journal, say: (line: string) => void): Promise<void> {
  for (const config of configFiles()) {
    if (config.path in configs) {
      await placeFile(root, config)
      say(`  ${config.path}`)
    } else say(`  ${config.path} is there already, and stays as it is`)
  }
}

/** @returns whether it differs from the one before */
async function placeProgram ({ root, node, say }: InstallOptions, record: InstallRecord): Promise<boolean> {
  const target = join(root, PROGRAM)
  const stage = freshOf(target)
  await rm(stage, { recursive: true, force: true })
  await stageProgram(stage, node, record)
  if (await isThere(target) && isSameTree(stage, target)) {
    await rm(stage, { recursive: true })
    return false
  }
  await setAside(target)
  await rename(stage, target)
  say(`  ${PROGRAM}`)
  return true
}

async function bringUp (system: System, { program, files, inPlace }: Changes, { before, isUnknown }: Start, steps: Steps, say: (line: string) => void): Promise<void> {
  const units = unitsOf([...new Set([...files, ...isUnknown ? inPlace : []])])
  await system.makeUsersAndFolders()
  await system.checkConfigs()
  // A power cut after this leaves a whole program, whichever of the two it is.
  if (program || files.length > 0) await system.sync([PROGRAM, CONFIG_FOLDER, ...new Set(inPlace.map(path => dirname(path)))])
  steps.isReloaded = true
  await system.systemctl('daemon-reload')
  await system.systemctl('enable', ...SERVICES)
  const sockets = units.filter(unit => unit.endsWith('.socket'))
  // A socket keeps the settings that it was opened with: only changes of sockets cut guests off for a moment.
  if (before !== undefined && sockets.length > 0) {
    steps.restarted.push(PROXY)
    await system.stopActivated(PROXY, sockets)
  }
  for (const service of SERVICES) {
    const verb = program || isUnknown || units.includes(service) ? 'restart' : 'start'
    steps.restarted.push(service)
    await system.bringUp(verb, service)
    say(`  ${verb}ed ${service}`)
  }
}

/** What is to be done once the old files are back; each of it also when another part fails. A service that was not restarted still runs the old program. */
function addWayBack (undo: Undo, system: System, steps: Steps, root: string, { before, journal }: Start): void {
  if (before !== undefined) {
    for (const service of SERVICES.toReversed()) undo.add(async () => { if (steps.restarted.includes(service)) await system.bringUp('restart', service) })
    undo.add(async () => { if (steps.restarted.includes(SERVER)) await bringDatabaseBack(system, root, journal) })
  }
  undo.add(async () => { if (steps.isReloaded) await system.systemctl('daemon-reload') })
}

/** The old server refuses a database that the new one has migrated. Of several versions that have, one after the other, the first one's copy is what the old server had. */
async function bringDatabaseBack (system: System, root: string, journal: Journal): Promise<void> {
  const { newestCopy } = journal
  const copy = newestCopy === undefined ? undefined : (await system.copies()).find(number => number > newestCopy)
  if (copy === undefined) return
  await system.systemctl('stop', SERVER)
  try {
    await system.bringDatabaseBack(copy)
  } catch (error) {
    throw new Error(`the database could not be brought back: ${error instanceof Error ? error.message : String(error)}
The previous server refuses it until its copy ${copy} is back: stop ${SERVER} here and the servers of all other hosts that use the database, run
  ${system.restoreCommand(copy)}
and start them again`, { cause: error })
  }
  // Once is enough: if the rest of the undo fails, the old server may change it until the next installation.
  await writeJournal(root, { ...journal, newestCopy: (await system.copies()).at(-1) ?? 0 })
}

async function forget (root: string, { folders }: Journal): Promise<void> {
  await removeJournal(root)
  // One that held the journal.
  await removeFolders(root, folders)
}

/** The server and systemd must not both manage the proxy, and an operator's file is not ours to change. */
async function checkServerConfig (root: string): Promise<void> {
  if (!await isThere(join(root, SERVER_CONFIG))) return
  const manage = await writtenSetting(root, 'plugins', 'egress', 'config', 'proxy', 'manage')
  if (manage === false) return
  throw new Error(`${SERVER_CONFIG} is there already and lets ${SERVER} look after the egress proxy itself; as a service, systemd does that. Put into it:
plugins:
  egress:
    config:
      proxy:
        manage: false
        controlSocket: /run/berth-egress/control.sock`)
}
