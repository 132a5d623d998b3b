// Starts the pages.
import { render } from 'preact'
import { App } from './shell/app.tsx'
import { askSession, sessionKey } from './state/session.ts'
import './style/all.css'

const root = document.createElement('div')
root.id = 'root'
document.body.append(root)
render(<App />, root)
askSession().catch(() => { sessionKey.value = null })
