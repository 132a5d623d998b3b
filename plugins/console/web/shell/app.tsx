// The whole application: the login page without a session, otherwise the page in the address.
import { useEffect } from 'preact/hooks'
import { Confirm } from '../parts/confirm.tsx'
import { Wait } from '../parts/wait.tsx'
import { followLive } from '../state/live.ts'
import { sessionKey } from '../state/session.ts'
import { ConnectionNotice } from './connection-notice.tsx'
import { LogIn } from './log-in.tsx'
import { Navigation } from './navigation.tsx'
import { Notices } from './notices.tsx'
import { Page } from './page.tsx'

export function App () {
  const key = sessionKey.value
  const isIn = key !== null && key !== undefined
  useEffect(() => {
    if (!isIn) return
    return followLive()
  }, [isIn])
  if (key === undefined) return <main><Wait what='who is logged in' /></main>
  if (key === null) return <LogIn />
  return (
    <div class='shell'>
      <a class='skip' href='#content' onClick={(event) => { event.preventDefault(); document.getElementById('content')?.focus() }}>Skip to the content</a>
      <Navigation />
      <div class='stage'><ConnectionNotice /><main id='content' tabIndex={-1}><Page /></main></div>
      <Notices /><Confirm />
    </div>
  )
}
