// The login page. The key is sent once, and kept nowhere.
import { useState } from 'preact/hooks'
import { messageOf } from '../api/call.ts'
import { farewell, logIn } from '../state/session.ts'

export function LogIn () {
  const [error, setError] = useState('')
  const [isBusy, setBusy] = useState(false)
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const field = form.elements.namedItem('key')
    if (!(field instanceof HTMLInputElement)) return
    setBusy(true)
    try {
      await logIn(field.value.trim())
    } catch (fault) {
      setError(messageOf(fault))
      setBusy(false)
      field.select()
    }
  }
  return (
    <main class='log-in'>
      <form onSubmit={(event) => { event.preventDefault(); void submit(event.currentTarget) }}>
        <h1>Berth</h1>
        {farewell.value !== '' && <p class='note' role='status'>{farewell.value}</p>}
        <label for='key'>API key</label>
        <input id='key' name='key' type='password' autocomplete='off' required spellcheck={false} aria-describedby='key-help' aria-invalid={error !== ''} autofocus />
        {error !== '' && <p class='fault' role='alert'>{error}</p>}
        <p id='key-help' class='quiet'>The first key of a server is in <code>keys/admin.key</code> of its data folder; <code>berth key create</code> makes others. The key is exchanged for a session, and the page does not keep it.</p>
        <button type='submit' class='button primary' aria-disabled={isBusy}>Log in</button>
      </form>
    </main>
  )
}
