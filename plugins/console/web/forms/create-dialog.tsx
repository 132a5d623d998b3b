// Creates an object with a form that is made from the API's document; a refusal is shown at its field.
import { useEffect, useState } from 'preact/hooks'
import { ApiError, call, messageOf } from '../api/call.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Problem } from '../parts/problem.tsx'
import { Wait } from '../parts/wait.tsx'
import { say } from '../state/notices.ts'
import { Field } from './field.tsx'
import type { Range } from './range.ts'
import { bodySchema, type Schema } from './schema.ts'
import { bodyOf, FieldError, type Typed } from './values.ts'

export interface CreateSpec {
  readonly method?: 'POST' | 'PUT'
  /** as in the document: `/instances/{id}/fork` */
  readonly documented: string
  /** absent: the same */
  readonly url?: string
  /** shown first, in this order; the other fields are folded away */
  readonly first: readonly string[]
  readonly initial?: Typed
  readonly suggestions?: () => Promise<Readonly<Record<string, readonly string[]>>>
  /** Shows what can be had, by field, as it becomes known; rejects when that is not known, and then nothing is said of it. */
  readonly ranges?: (show: (ranges: Readonly<Record<string, Range>>) => void) => Promise<void>
  /** the field that a refusal is about, where its message does not begin with it */
  readonly fieldOf?: (code: string, message: string) => string | undefined
  /** the message after success; absent: that it was made */
  readonly onMade?: (made: unknown) => void
}

export function CreateDialog ({ spec, title, onClose, onMade }: { readonly spec: CreateSpec, readonly title: string, readonly onClose: () => void, readonly onMade: () => void }) {
  const [schema, setSchema] = useState<Schema | undefined>(undefined)
  const [problem, setProblem] = useState('')
  const [typed, setTyped] = useState<Typed>(spec.initial ?? {})
  const [fault, setFault] = useState<{ readonly field: string, readonly message: string } | undefined>(undefined)
  const [suggestions, setSuggestions] = useState<Readonly<Record<string, readonly string[]>>>({})
  const [ranges, setRanges] = useState<Readonly<Record<string, Range>>>({})
  const method = spec.method ?? 'POST'
  useEffect(() => {
    bodySchema(method, spec.documented).then((found) => {
      if (found === undefined) setProblem('This server does not have this: the plugin is turned off.')
      setSchema(found)
    }, (error: unknown) => { setProblem(messageOf(error)) })
    spec.suggestions?.().then(setSuggestions, () => undefined)
    spec.ranges?.(setRanges).catch(() => undefined)
  }, [])
  const submit = async (): Promise<void> => {
    if (schema === undefined) return
    setFault(undefined)
    setProblem('')
    try {
      const made = await call<unknown>(method, spec.url ?? spec.documented, bodyOf(schema, typed))
      if (spec.onMade === undefined) say('Done.')
      else spec.onMade(made)
      onMade()
    } catch (error) {
      const field = error instanceof ApiError ? spec.fieldOf?.(error.code, error.message) : undefined
      const found = error instanceof FieldError ? { field: error.field, message: error.message } : field === undefined ? faultIn(schema, messageOf(error)) : { field, message: messageOf(error) }
      if (found === undefined) setProblem(messageOf(error))
      else setFault(found)
    }
  }
  const all = Object.entries(schema?.properties ?? {})
  const first = spec.first.flatMap((name) => all.filter(([each]) => each === name))
  const rest = all.filter(([name]) => !spec.first.includes(name))
  const field = ([name, member]: readonly [string, Schema]) => <Field key={name} name={name} place={name} schema={member} required={schema?.required?.includes(name) === true} typed={typed} fault={fault} suggestions={suggestions} ranges={ranges} onType={(place, text) => { setTyped((before) => ({ ...before, [place]: text })) }} />
  return (
    <Dialog title={title} onClose={onClose} wide>
      <form noValidate onSubmit={(event) => { event.preventDefault(); void submit() }}>
        {problem !== '' && <Problem text={problem} />}
        {schema === undefined ? problem === '' && <Wait what='what can be set' /> : <>
          {first.map(field)}
          {rest.length > 0 && <details class='rest' open={fault !== undefined && !spec.first.some((name) => fault.field.split('.')[0] === name)}><summary>More settings ({rest.length})</summary>{rest.map(field)}</details>}
                                                                                    </>}
        <footer><Button onPress={onClose}>Cancel</Button><Button kind='primary' unless={schema === undefined && 'Nothing can be set yet.'} onPress={submit}>{title}</Button></footer>
      </form>
    </Dialog>
  )
}

/** The API's messages begin with the field: `network.egress.mode: must be …`, `name must have …`. */
function faultIn (schema: Schema, message: string): { readonly field: string, readonly message: string } | undefined {
  const [, field = '', rest = ''] = /^([\w.]+)(?:\[\d+\])?:? (.+)$/s.exec(message) ?? []
  return schema.properties?.[field.split('.')[0] ?? ''] === undefined ? undefined : { field, message: rest }
}
