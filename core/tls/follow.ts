// Follows the files of a certificate: their content is used only when certificate and key belong together.
import { Gauge, Counter, type Registry } from 'prom-client'
import type { Logger } from '../contracts/services.ts'
import { readPair, stampOf, UnusablePair, type Pair, type PairFiles } from './pair.ts'

/** How often the files are checked for changes. A watch would miss a change of a link further up the path. */
const INTERVAL_MS = 2_000

export interface FollowedPair {
  /** the pair at the start */
  readonly first: Pair
  close (): void
}

export interface FollowOptions {
  readonly files: PairFiles
  /** puts a new pair to use */
  readonly use: (pair: Pair) => void
  readonly log: Logger
  /** the owner of the certificate, in the words of the log */
  readonly owner?: string
  /** the place of the two files in the configuration */
  readonly place?: string
  /** absent: no metrics */
  readonly figures?: FollowFigures
  readonly intervalMs?: number
}

export interface FollowFigures { readonly ends: Gauge, readonly unusable: Gauge, readonly reloads: Counter }

/**
 * Rejects when the files are invalid at the start. Later an invalid pair changes nothing: it is reported once, after two checks in a row have found it so,
 * since a renewal writes one file after the other.
 */
export async function followPair ({ files, use, log, owner = 'the API', place, figures, intervalMs = INTERVAL_MS }: FollowOptions): Promise<FollowedPair> {
  // Taken before the files are read: a change meanwhile is read at the next check.
  let seen = await stampOf(files)
  const first = await readPair(files, place)
  let current = first
  let refused: string | undefined
  figures?.ends.set(first.endsAt / 1000)
  if (first.endsAt < Date.now()) log.warn({ ended: new Date(first.endsAt) }, `the certificate of ${owner} has ended; clients will refuse it`)

  const look = async (): Promise<void> => {
    const stamp = await stampOf(files)
    const isSettled = stamp === seen
    if (isSettled && (refused === undefined || refused === stamp)) return
    seen = stamp
    try {
      const pair = await readPair(files, place)
      refused = undefined
      figures?.unusable.set(0)
      if (pair.cert.equals(current.cert) && pair.key.equals(current.key)) return
      use(pair)
      current = pair
      figures?.ends.set(pair.endsAt / 1000)
      figures?.reloads.inc({ result: 'ok' })
      log.info({ ends: new Date(pair.endsAt), sha256: pair.fingerprint }, `${owner} has a new certificate`)
    } catch (error) {
      if (!isSettled) {
        // checked once more at the next look
        refused = ''
        return
      }
      refused = stamp
      figures?.unusable.set(1)
      figures?.reloads.inc({ result: 'refused' })
      log.warn({ reason: error instanceof UnusablePair ? error.message : 'it could not be taken into use' }, `the certificate of ${owner} has changed and cannot be used; the one before stays`)
    }
  }

  let isClosed = false
  let timer: NodeJS.Timeout
  const plan = (): void => {
    timer = setTimeout(() => {
      void look().catch((error: unknown) => { log.warn({ err: error }, `the certificate of ${owner} could not be looked at`) }).finally(() => { if (!isClosed) plan() })
    }, intervalMs).unref()
  }
  plan()
  return {
    first,
    close () {
      isClosed = true
      clearTimeout(timer)
    }
  }
}

/** The metrics of the API's certificate. */
export function figuresOf (metrics: Registry): FollowFigures {
  const registers = [metrics]
  return {
    ends: new Gauge({ name: 'berth_tls_certificate_end_timestamp_seconds', help: 'When the certificate that the API uses ends, as Unix time', registers }),
    unusable: new Gauge({ name: 'berth_tls_files_unusable', help: '1 while the files of the certificate have changed and cannot be used, so that the one before stays', registers }),
    reloads: new Counter({ name: 'berth_tls_reloads_total', help: 'Changes of the certificate\'s files, by what became of them', labelNames: ['result'], registers })
  }
}
