// Asks before something is deleted, and names what is deleted with it.
import { signal } from '@preact/signals'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'

interface Question { readonly title: string, readonly text: string, readonly goes: readonly string[], readonly verb: string, readonly act: () => Promise<void> }

const question = signal<Question | undefined>(undefined)

export function ask (asked: Question): void { question.value = asked }

export function Confirm () {
  const asked = question.value
  if (asked === undefined) return null
  const close = (): void => { question.value = undefined }
  return (
    <Dialog title={asked.title} onClose={close}>
      <p>{asked.text}</p>
      {asked.goes.length > 0 && <ul>{asked.goes.map((each) => <li key={each}>{each}</li>)}</ul>}
      <footer><Button onPress={close}>Cancel</Button><Button kind='danger' onPress={async () => { await asked.act(); close() }}>{asked.verb}</Button></footer>
    </Dialog>
  )
}
