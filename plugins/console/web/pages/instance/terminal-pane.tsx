// One terminal. The library that draws it is loaded when the first one is opened.
import { useEffect, useRef, useState } from 'preact/hooks'
import { messageOf, path } from '../../api/call.ts'
import { openSocket } from '../../api/socket.ts'

export function TerminalPane ({ id, number, command, onClose }: { readonly id: string, readonly number: number, readonly command: string, readonly onClose: () => void }) {
  const place = useRef<HTMLDivElement>(null)
  const [status, setStatus] = useState('Connecting …')
  useEffect(() => {
    let end: (() => void) | undefined
    let isGone = false
    void (async () => {
      try {
        const { openTerminal } = await import('./terminal-screen.ts')
        if (isGone || place.current === null) return
        const screen = openTerminal(place.current)
        end = screen.end
        const socket = await openSocket(path`/instances/${id}/exec`)
        end = () => { socket.close(); screen.end() }
        if (isGone) { end(); return }
        setStatus('')
        screen.attach(socket, command.split(' ').filter((word) => word !== ''), setStatus)
      } catch (error) {
        setStatus(messageOf(error))
      }
    })()
    return () => { isGone = true; end?.() }
  }, [])
  return (
    <section class='terminal' aria-label={`Terminal ${number}`}>
      <header><span>{number}: <code>{command}</code> <span class='quiet' role='status'>{status}</span></span><button type='button' class='icon' aria-label={`Close terminal ${number}`} onClick={onClose}>×</button></header>
      <div
        ref={place} class='screen' onKeyDownCapture={(event) => {
          if (event.key !== 'Escape' || !event.ctrlKey || !event.shiftKey) return
          event.stopPropagation()
          event.currentTarget.parentElement?.querySelector('button')?.focus()
        }}
      />
    </section>
  )
}
