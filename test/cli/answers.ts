// What commands print with --json, held against the API's own document.
import type { Test } from 'tap'
import { Value } from 'typebox/value'
import { withoutReferences } from '../helpers/api-document.ts'
import { berth } from './berth.ts'

export interface Call {
  readonly args: readonly string[]
  /** the call of the API whose answer is printed, as `GET /instances/{}` */
  readonly answers: string
  /** the field of that answer, where it is not the whole */
  readonly field?: string
  /** several of them */
  readonly many?: boolean
  readonly input?: string | Buffer
  readonly env?: Readonly<Record<string, string>>
}

interface Schema { readonly properties?: Readonly<Record<string, Schema>> }
interface Document { readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>> }>>>> }

/** Runs each call with --json (before its name, since what follows may be a program's), one after the other. What it prints is one JSON document, not an empty list, and of the schema. Gives what they printed. */
export async function checkAnswers (t: Test, server: { readonly url: string, readonly key: string }, calls: readonly Call[]): Promise<unknown[]> {
  const answer = await fetch(new URL('/openapi.json', server.url), { headers: { authorization: `Bearer ${server.key}` } })
  const document = await answer.json() as Document
  const printed: unknown[] = []
  for (const call of calls) printed.push(await checkAnswer(t, server, document, call))
  return printed
}

async function checkAnswer (t: Test, { url, key }: { readonly url: string, readonly key: string }, document: Document, { args, answers, field, many = false, input = '', env = {} }: Call): Promise<unknown> {
  const { code, out, error } = await berth(['--json', ...args], { input, env: { BERTH_URL: url, BERTH_TOKEN: key, ...env } })
  const title = args.join(' ')
  if (code !== 0) {
    t.fail(`${title}: ${code} ${error}`)
    return undefined
  }
  const value: unknown = JSON.parse(out)
  const schema = schemaOf(document, answers, field)
  const values = many && Array.isArray(value) ? value : [value]
  const faults = values.flatMap((each) => Value.Check(schema, each) ? [] : Value.Errors(schema, each).slice(0, 3))
  t.ok(values.length > 0 && faults.length === 0 && !(Array.isArray(value) && value.length === 0), title, { faults, out: out.slice(0, 1000) })
  return value
}

function schemaOf (document: Document, operation: string, field?: string): Schema {
  const [method = '', path = ''] = operation.split(' ')
  const found = Object.entries(document.paths).find(([each]) => each.replaceAll(/\{\w+\}/g, '{}') === path)?.[1][method.toLowerCase()]
  const answer = Object.entries(found?.responses ?? {}).find(([status]) => status.startsWith('2'))?.[1]
  const schema = answer?.content?.['application/json']?.schema
  if (schema === undefined) throw new Error(`the document has no answer of ${operation}`)
  const whole = withoutReferences(schema, document)
  const part = field === undefined ? whole : whole.properties?.[field]
  if (part === undefined) throw new Error(`the answer of ${operation} has no ${field}`)
  return part
}

type CheckAnswers = typeof checkAnswers

/** What a plugin's commands answer, for answers.long.test.ts. */
export interface AnswersOfPlugin {
  readonly name: string
  check (t: Test, checkAnswers: CheckAnswers): Promise<void>
}

export async function firstId ({ url, key }: { readonly url: string, readonly key: string }, ...args: readonly string[]): Promise<string> {
  return (await berth([...args, '-q'], { env: { BERTH_URL: url, BERTH_TOKEN: key } })).out.split('\n', 1)[0] ?? ''
}
