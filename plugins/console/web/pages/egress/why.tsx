// Why a request was refused, and the rule that would allow it.
import { Button } from '../../parts/button.tsx'
import { Copy } from '../../parts/copy.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import type { EgressRow } from './egress-table.tsx'

interface Reason { readonly why: string, readonly rule?: (row: EgressRow) => { readonly title: string, readonly text: string } }

const config = (lines: string): { readonly title: string, readonly text: string } => ({ title: "In the server's configuration, which then has to be started anew", text: lines })

const REASONS: Readonly<Record<string, Reason>> = {
  metadata_refused: { why: "Services that tell credentials of a cloud's machines are never reached. No rule allows it." },
  own_address: { why: 'The host is this machine itself, which guests reach by a published port only. No rule of the way out allows it.' },
  private_address: { why: 'The host has an address of a private network.', rule: ({ host }) => config(`plugins:\n  egress:\n    config:\n      allowPrivate: [${/^[\d.]+$/.test(host) ? `${host}/32` : `ADDRESS OF ${host}`}]`) },
  secret_unavailable: { why: 'A credential for this host has no value now.', rule: ({ instanceId }) => ({ title: 'Give it one', text: `berth update ${instanceId} --env NAME=VALUE` }) },
  misdirected: { why: 'The request named another host than its connection. The program in the instance has to name one host.' },
  upstream_certificate: { why: 'The certificate of the host is not one that is trusted.', rule: () => config('plugins:\n  egress:\n    config:\n      roots: [/etc/berth/authority.pem]') },
  too_many_connections: { why: 'The instance has as many open connections as it may.', rule: () => config('plugins:\n  egress:\n    config:\n      limits:\n        connections: 2048') },
  too_many_requests: { why: 'The instance has as many requests under way as it may.', rule: () => config('plugins:\n  egress:\n    config:\n      limits:\n        requests: 512') },
  no_request: { why: "The program left after the handshake: most often it does not trust the proxy's certificate, which is in the guest's own store and in SSL_CERT_FILE." }
}

export function Why ({ row, onClose }: { readonly row: EgressRow, readonly onClose: () => void }) {
  const { host, port, path = '', reason = '' } = row
  const known = REASONS[reason]
  const rule = known?.rule?.(row)
  return (
    <Dialog title='Why it was refused' onClose={onClose}>
      <p><code>{host}:{port}{path}</code></p>
      <p>{known?.why ?? `The proxy's reason is ${reason.replaceAll('_', ' ')}. No rule of a policy decides that.`}</p>
      {rule !== undefined && <><h3>{rule.title}</h3><Copy label='rule' text={rule.text} /></>}
      <footer><Button onPress={onClose}>Close</Button></footer>
    </Dialog>
  )
}
