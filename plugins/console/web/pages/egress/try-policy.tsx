// Tries a policy against an address before any instance has it.
import { useState } from 'preact/hooks'
import { CreateDialog } from '../../forms/create-dialog.tsx'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'

interface Verdict { readonly decision: 'allow' | 'refuse' | 'direct', readonly message?: string, readonly host: string, readonly port: number, readonly needs_address: boolean, readonly injected: readonly string[], readonly headers: readonly string[] }

const DECISIONS = { allow: 'It would be let through.', refuse: 'It would be refused.', direct: 'It would go out beside the proxy, and nothing would be written down.' } as const

export function TryPolicy () {
  const [isAsking, setAsking] = useState(false)
  const [verdict, setVerdict] = useState<Verdict | undefined>(undefined)
  return (
    <>
      <Button scope='instance:read' onPress={() => { setAsking(true) }}>Try a policy</Button>
      {isAsking && <CreateDialog title='Try a policy' spec={{ documented: '/egress/try', first: ['url', 'mode', 'credentials'], onMade: (answer) => { setVerdict(answer as Verdict) } }} onClose={() => { setAsking(false) }} onMade={() => { setAsking(false) }} />}
      {verdict !== undefined && <Dialog title={`${verdict.host}:${verdict.port}`} onClose={() => { setVerdict(undefined) }}>
        <p><strong>{DECISIONS[verdict.decision]}</strong> {verdict.message}</p>
        <p>{verdict.injected.length === 0 ? 'No credential would be put in.' : `Put in would be ${verdict.injected.join(', ')}, as ${verdict.headers.join(', ')}.`}</p>
        {verdict.decision === 'allow' && verdict.needs_address && <p class='quiet'>The addresses of the name are judged as well, when a request is made.</p>}
        <footer><Button onPress={() => { setVerdict(undefined); setAsking(true) }}>Try another</Button></footer>
      </Dialog>}
    </>
  )
}
