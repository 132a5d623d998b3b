// The list of pages, and the current key.
import { Button } from '../parts/button.tsx'
import { Choice } from '../parts/choice.tsx'
import { href, route } from '../state/route.ts'
import { logOut, sessionKey } from '../state/session.ts'
import { PAGES } from './pages.ts'

export function Navigation () {
  const current = route.value.parts[0] ?? 'instances'
  return (
    <nav class='navigation' aria-label='Pages'>
      <a class='brand' href={href(['instances'])}>Berth</a>
      <ul>{PAGES.map(({ id, title }) => <li key={id}><Choice href={href([id])} isChosen={id === current}>{title}</Choice></li>)}</ul>
      <div class='who'><span title={`Scopes: ${sessionKey.value?.scopes.join(', ') ?? ''}`}>{sessionKey.value?.name}</span><Button onPress={logOut}>Log out</Button></div>
    </nav>
  )
}
