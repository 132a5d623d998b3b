// The imports between the sources of a checkout, as they are written.
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'

export interface Import {
  readonly from: string
  readonly to: string
  /** an import of types only, which the build removes */
  readonly typeOnly: boolean
}

export interface Source {
  /** relative to the checkout */
  readonly file: string
  readonly lines: number
  readonly imports: readonly Import[]
}

/** All sources below `folders` of the checkout `root`. */
export async function readSources (root: string, folders: readonly string[]): Promise<Source[]> {
  const there = folders.filter((folder) => existsSync(join(root, folder)))
  const files = (await Promise.all(there.map(async (folder) => (await readdir(join(root, folder), { recursive: true })).map((name) => join(folder, name))))).flat()
  return await Promise.all(files.filter((file) => file.endsWith('.ts')).sort().map(async (file) => await readSource(root, file)))
}

async function readSource (root: string, file: string): Promise<Source> {
  const text = await readFile(join(root, file), 'utf8')
  const imports: Import[] = []
  for (const statement of ts.createSourceFile(file, text, ts.ScriptTarget.Latest).statements) {
    const specifier = ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement) ? statement.moduleSpecifier : undefined
    if (specifier === undefined || !ts.isStringLiteral(specifier) || !specifier.text.startsWith('.')) continue
    const to = relative(root, resolve(root, dirname(file), specifier.text))
    imports.push({ from: file, to, typeOnly: isTypeOnly(statement) })
  }
  return { file, lines: text.split('\n').length - 1, imports }
}

function isTypeOnly (statement: ts.Statement): boolean {
  if (ts.isExportDeclaration(statement)) return statement.isTypeOnly
  if (!ts.isImportDeclaration(statement) || statement.importClause === undefined) return false
  const { importClause: { isTypeOnly, name, namedBindings } } = statement
  return isTypeOnly || (name === undefined && namedBindings !== undefined && ts.isNamedImports(namedBindings) && namedBindings.elements.every((element) => element.isTypeOnly))
}
