// `node dist/setup/test/names.js [FOLDER]`: the names of all tests of a checkout, one line each, as they stand in its sources, so that two
// commits can be compared without running either. Every call in a file of test/ that makes a test counts; what is computed in a name is shown as ${…}.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import ts from 'typescript'
import { packageRoot } from '../../core/package-root.ts'

/** calls that make a test, and the position of the name among their arguments */
const MAKERS: ReadonlyMap<string, number> = new Map([['test', 0], ['eachDatabase', 1]])

/** Names in the order of a file. A table of tests, `{ 'name': run }` or `{ name: 'text', … }`, gives its keys and its `name` fields. */
export function testNames (file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const names: string[] = []
  const visit = (node: ts.Node): void => {
    const name = ts.isCallExpression(node) ? nameOfCall(node) : ts.isPropertyAssignment(node) ? nameOfEntry(node) : undefined
    if (name !== undefined) names.push(name)
    ts.forEachChild(node, visit)
  }
  visit(source)
  return names
}

function nameOfCall (call: ts.CallExpression): string | undefined {
  const called = call.expression
  const maker = ts.isPropertyAccessExpression(called) ? called.name.text : ts.isIdentifier(called) ? called.text : ''
  const place = MAKERS.get(maker)
  const argument = place === undefined ? undefined : call.arguments[place]
  return argument === undefined ? undefined : textOf(argument)
}

/** Only names that read as a sentence: other tables have keys and names, too. */
function nameOfEntry (entry: ts.PropertyAssignment): string | undefined {
  if (ts.isStringLiteral(entry.name) && ts.isIdentifier(entry.initializer) && entry.name.text.includes(' ')) return entry.name.text
  const name = entry.name.getText() === 'name' ? textOf(entry.initializer) : undefined
  return name?.includes(' ') === true ? name : undefined
}

function textOf (node: ts.Expression): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text
  if (!ts.isTemplateExpression(node)) return undefined
  return node.head.text + node.templateSpans.map((span) => '${…}' + span.literal.text).join('')
}

/** One line for each test of a checkout, sorted; without the tier in the file's name, since a test is the same in either. */
export async function listTests (root: string): Promise<string[]> {
  const files = (await readdir(join(root, 'test'), { recursive: true })).filter((name) => name.endsWith('.ts'))
  const found = await Promise.all(files.map(async (name) => {
    const file = join('test', name)
    return testNames(file, await readFile(join(root, file), 'utf8')).map((test) => `${file.replace(/(\.long)?(\.test)?\.ts$/, '')}: ${test}`)
  }))
  return found.flat().sort()
}

if (process.argv[1] === import.meta.filename) console.log((await listTests(process.argv[2] ?? packageRoot)).join('\n'))
