// Says that the shown data may be old.
import { Time } from '../parts/time.tsx'
import { connection } from '../state/live.ts'

export function ConnectionNotice () {
  const { value } = connection
  if (value.state !== 'lost') return null
  return <p class='lost' role='alert'>The connection to the server was lost <Time at={new Date(value.since).toISOString()} />. What you see may be out of date. It is being tried again; everything is read anew once the server answers.</p>
}
