// The output of a build, live.
import { useEffect, useState } from 'preact/hooks'
import { path } from '../api/call.ts'
import type { Build } from '../api/types.ts'
import { Dialog } from '../parts/dialog.tsx'
import { Problem } from '../parts/problem.tsx'
import { whileSeen } from '../state/seen.ts'

const MOST_CHARACTERS = 500_000

export function BuildLog ({ build: { id, error }, onClose }: { readonly build: Build, readonly onClose: () => void }) {
  const [text, setText] = useState('')
  useEffect(() => whileSeen(() => {
    setText('')
    const stream = new EventSource(`${path`/builds/${id}/events`}?follow=true`)
    const take = ({ data }: MessageEvent): void => {
      const { content } = JSON.parse(String(data)) as { readonly content?: string }
      if (content !== undefined) setText((before) => `${before}${before === '' || before.endsWith('\n') ? '' : '\n'}${content}`.slice(-MOST_CHARACTERS))
    }
    stream.addEventListener('message', take)
    stream.addEventListener('error', () => { stream.close() })
    return () => { stream.close() }
  }), [id])
  return <Dialog title={`Log of build ${id.slice(0, 12)}`} onClose={onClose} wide>{error !== null && <Problem text={error} />}<pre class='output' tabIndex={0} role='log' aria-label='Log'>{text !== '' ? text : error === null ? 'Nothing was printed yet.' : 'Nothing was printed.'}</pre></Dialog>
}
