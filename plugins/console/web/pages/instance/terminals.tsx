// Terminals in the guest, several beside one another. Each is a program of its own there, and ends when it is closed.
import { useState } from 'preact/hooks'
import type { Instance } from '../../api/types.ts'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { allows } from '../../state/session.ts'
import { TerminalPane } from './terminal-pane.tsx'

export function Terminals ({ instance: { id, state } }: { readonly instance: Instance }) {
  const [panes, setPanes] = useState<readonly number[]>([])
  const [command, setCommand] = useState('/bin/sh')
  const [next, setNext] = useState(1)
  const unless = state !== 'Running' && `A terminal needs a running instance; it is ${state}.`
  const open = (): void => { setPanes([...panes, next]); setNext(next + 1) }
  return (
    <section class='terminals' aria-label='Terminals'>
      <div class='bar'><label>Command <input class='command' value={command} spellcheck={false} onInput={(event) => { setCommand(event.currentTarget.value) }} /></label><Button kind='primary' scope='instance:write' unless={unless} onPress={open}>Open a terminal</Button></div>
      {panes.length === 0 && <Empty title='No terminal is open.'>{allows('instance:write') ? 'The command must be in the image. Leave the terminal with the keyboard by Ctrl+Shift+Escape.' : 'This key lacks the scope instance:write.'}</Empty>}
      <div class='panes'>{panes.map((number) => <TerminalPane key={number} number={number} id={id} command={command} onClose={() => { setPanes((before) => before.filter((each) => each !== number)) }} />)}</div>
    </section>
  )
}
