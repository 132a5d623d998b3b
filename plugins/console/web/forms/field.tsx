// One field of a form, made from its schema.
import { useId } from 'preact/hooks'
import type { Range } from './range.ts'
import type { Schema } from './schema.ts'
import { Slider } from './slider.tsx'
import { kindOf, type Typed } from './values.ts'

export interface FieldProps {
  readonly name: string
  readonly place: string
  readonly schema: Schema
  readonly required: boolean
  readonly typed: Typed
  readonly fault: { readonly field: string, readonly message: string } | undefined
  /** values to choose from, by the path of the field */
  readonly suggestions: Readonly<Record<string, readonly string[]>>
  /** what can be had, by the path of the field; absent: not known */
  readonly ranges: Readonly<Record<string, Range>>
  readonly onType: (place: string, text: string) => void
}

export function Field (props: FieldProps) {
  const { name, place, schema, required, typed, fault, suggestions, ranges, onType } = props
  const id = useId()
  const kind = kindOf(schema)
  if (kind === 'object') {
    return (
      <details class='group' open={fault?.field.startsWith(`${place}.`)}><summary>{title(name)}</summary>
        {Object.entries(schema.properties ?? {}).map(([member, inner]) => <Field key={member} {...props} name={member} place={`${place}.${member}`} schema={inner} required={false} />)}
      </details>
    )
  }
  const isFaulty = fault?.field === place
  const range = ranges[place]
  const value = typed[place] ?? ''
  const hint = [schema.description, kind === 'list' ? 'One in each line.' : kind === 'map' ? 'NAME=value, one in each line.' : kind === 'json' ? 'As JSON.' : undefined, range?.text].filter((part) => part !== undefined).join('. ').replaceAll('..', '.')
  const shared = { id, name: place, required, 'aria-invalid': isFaulty, 'aria-describedby': `${id}-hint`, value }
  const type = (event: { readonly currentTarget: { readonly value: string } }): void => { onType(place, event.currentTarget.value) }
  const list = suggestions[place]
  return (
    <div class={isFaulty ? 'field faulty' : 'field'}>
      <label for={id}>{title(name)}{required && <span class='required'> required</span>}</label>
      {kind === 'choice' || kind === 'truth'
        ? <select {...shared} onChange={type}><option value=''>{required ? 'Choose' : 'as the server decides'}</option>{(kind === 'truth' ? ['true', 'false'] : schema.enum ?? []).map((each) => <option key={String(each)} value={String(each)}>{each === 'true' ? 'yes' : each === 'false' ? 'no' : String(each)}</option>)}</select>
        : kind === 'list' || kind === 'map' || kind === 'json'
          ? <textarea {...shared} rows={kind === 'list' ? 2 : 3} spellcheck={false} onInput={type} />
          : <input {...shared} type={kind === 'number' ? 'number' : 'text'} min={schema.minimum} max={schema.maximum} step='any' autocomplete='off' spellcheck={false} placeholder={schema.examples?.[0] === undefined ? undefined : String(schema.examples[0])} list={list === undefined ? undefined : `${id}-list`} onInput={type} />}
      {range !== undefined && <Slider label={title(name)} range={range} typed={value} describedBy={`${id}-hint`} onType={(text) => { onType(place, text) }} />}
      {list !== undefined && <datalist id={`${id}-list`}>{list.map((each) => <option key={each} value={each} />)}</datalist>}
      <p id={`${id}-hint`} class='hint'>{isFaulty ? <strong class='fault'>{fault?.message} </strong> : null}{hint}</p>
    </div>
  )
}

function title (name: string): string {
  const words = name.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
