// A state as a word with a mark of its own shape: not everybody can tell colours apart.
const GOOD = new Set(['Running', 'ready', 'active', 'started', 'pushed', 'healthy', 'ok', 'running'])
const BUSY = new Set(['Initializing', 'Created', 'pending', 'pulling', 'converting', 'queued', 'building', 'pushing', 'waiting', 'compressing', 'starting', 'warning'])
const BAD = new Set(['Unknown', 'failed', 'dead', 'failing', 'blocked', 'error', 'unhealthy', 'revoked', 'ended', 'hung'])
const ASLEEP = new Set(['Standby', 'Paused', 'paused'])

export function State ({ value, reason }: { readonly value: string, readonly reason?: string | null | undefined }) {
  const kind = GOOD.has(value) ? 'good' : BUSY.has(value) ? 'busy' : BAD.has(value) ? 'bad' : ASLEEP.has(value) ? 'asleep' : 'off'
  return <span class={`state state-${kind}`} title={reason ?? undefined}><i aria-hidden='true' />{value}</span>
}
