// The screen of a terminal, and the program in the guest behind it.
import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import { boundedOutput } from './bounded-output.ts'
import { documentWithoutInlineStyle } from './sheet-document.ts'

export interface TerminalScreen {
  attach (socket: WebSocket, command: readonly string[], tell: (status: string) => void): void
  end (): void
}

export function openTerminal (place: HTMLElement): TerminalScreen {
  const { ownDocument, dispose } = documentWithoutInlineStyle()
  const terminal = new Terminal({
    documentOverride: ownDocument, cursorBlink: true, fontSize: 13, scrollback: 10_000, screenReaderMode: true,
    fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
    theme: { background: '#14171c', foreground: '#e4e7eb', cursor: '#e4e7eb' }
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  terminal.open(place)
  fit.fit()
  const observer = new ResizeObserver(() => { if (place.clientWidth > 0) fit.fit() })
  observer.observe(place)
  return {
    attach (socket, command, tell) {
      const size = (): { readonly rows: number, readonly cols: number } => ({ rows: terminal.rows, cols: terminal.cols })
      socket.send(JSON.stringify({ command, tty: true, control: true, env: { TERM: 'xterm-256color' }, ...size() }))
      terminal.onData((text) => { if (socket.readyState === WebSocket.OPEN) socket.send(new TextEncoder().encode(text)) })
      terminal.onResize(() => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ resize: size() })) })
      const show = boundedOutput((output, drawn) => { terminal.write(output, drawn) })
      socket.addEventListener('message', ({ data }) => {
        if (typeof data !== 'string') { show(new Uint8Array(data as ArrayBuffer)); return }
        const { exitCode, error } = JSON.parse(data) as { readonly exitCode?: number, readonly error?: string }
        tell(error ?? `ended with code ${String(exitCode)}`)
      })
      socket.addEventListener('close', ({ code }) => { if (code !== 1000) tell('The connection was lost; the program was ended.') })
      terminal.focus()
    },
    end () {
      observer.disconnect()
      terminal.dispose()
      dispose()
    }
  }
}
