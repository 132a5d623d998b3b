// What is left of a checkout without the folder of one plugin: whether it compiles. Nothing is copied: the compiler does not see the files that are left out.
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'
import { readSources, type Source } from './imports.ts'

/** Plugins whose folder can be deleted, one at a time. Those that are not here are what all the others stand on. */
export const REMOVABLE = ['builds', 'devices', 'egress', 'ingress', 'ports', 'pushes', 'resources', 'snapshots', 'tracing', 'volumes', 'webhooks'] as const

/** Code that may need any plugin, and goes with it. */
const GOES_WITH = ['test', 'bench'] as const

export const FOLDERS = ['core', 'plugins', 'proxy', 'setup', ...GOES_WITH] as const

export interface Remains {
  /** files outside of the plugin's folders that go with it: they import it, or one that does */
  readonly gone: readonly string[]
  /** what the compiler says of the rest */
  readonly problems: readonly string[]
}

/** What stays without a plugin and imports what goes: it does not compile. Quick, since only imports are looked at. */
export function importersLeft (sources: readonly Source[], plugin: string): readonly string[] {
  const gone = filesWithout(sources, plugin)
  return sources.filter(({ file, imports }) => !gone.has(file) && imports.some(({ to }) => gone.has(to))).map(({ file }) => file)
}

/** What compiles of a checkout; several plugins can be asked about one after the other, and what both have in common is read once. */
export function createCompiler (root: string): (plugin: string) => Promise<Remains> {
  const { fileNames, options } = configOf(root)
  const host = ts.createCompilerHost(options)
  const files = new Map<string, ts.SourceFile | undefined>()
  return async (plugin) => {
    const left = filesWithout(await readSources(root, FOLDERS), plugin)
    const isGone = (path: string): boolean => left.has(relative(root, path))
    const seen: ts.CompilerHost = {
      ...host,
      fileExists: (path) => !isGone(path) && host.fileExists(path),
      readFile: (path) => isGone(path) ? undefined : host.readFile(path),
      getSourceFile (path, ...others) {
        if (isGone(path)) return undefined
        if (!files.has(path)) files.set(path, host.getSourceFile(path, ...others))
        return files.get(path)
      }
    }
    const program = ts.createProgram({ rootNames: fileNames.filter((path) => !isGone(path)), options, host: seen })
    const folders = foldersOf(plugin)
    return {
      gone: [...left].filter((file) => !folders.some((folder) => file.startsWith(folder))),
      problems: [...program.getSyntacticDiagnostics(), ...program.getSemanticDiagnostics()].map((problem) => textOf(root, problem))
    }
  }
}

function configOf (root: string): ts.ParsedCommandLine {
  const path = join(root, 'tsconfig.json')
  const { config } = ts.readConfigFile(path, (file) => ts.sys.readFile(file))
  const parsed = ts.parseJsonConfigFileContent(config, ts.sys, dirname(path))
  return { ...parsed, options: { ...parsed.options, noEmit: true, incremental: false } }
}

function foldersOf (plugin: string): readonly string[] {
  return [`plugins/${plugin}/`, `test/plugins/${plugin}/`]
}

/** The plugin, its tests, and the tests and benchmarks that import either, at whatever distance. */
function filesWithout (sources: readonly Source[], plugin: string): ReadonlySet<string> {
  const gone = new Set(sources.map(({ file }) => file).filter((file) => foldersOf(plugin).some((folder) => file.startsWith(folder))))
  for (let before = -1; before !== gone.size;) {
    before = gone.size
    for (const { file, imports } of sources) {
      if (GOES_WITH.some((area) => file.startsWith(`${area}/`)) && imports.some(({ to }) => gone.has(to))) gone.add(file)
    }
  }
  return gone
}

function textOf (root: string, { file, start, messageText }: ts.Diagnostic): string {
  const place = file === undefined || start === undefined ? '' : `${relative(root, file.fileName)}:${file.getLineAndCharacterOfPosition(start).line + 1}: `
  return place + ts.flattenDiagnosticMessageText(messageText, '\n')
}
