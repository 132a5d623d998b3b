// Streams of a page are open while somebody sees it. With HTTP/1.1 a browser has six connections to a host, for all its tabs together: a stream in each of six tabs would leave none for anything else.

/** A look at another tab, and back, reads nothing anew. */
const HIDDEN_MS = 5000

/** Opens now, or once the page is seen; closes some seconds after it no longer is, and opens again when it is. `open` returns what closes. Returns what ends all of it. */
export function whileSeen (open: () => () => void): () => void {
  let close: (() => void) | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  const shut = (): void => {
    close?.()
    close = undefined
  }
  const look = (): void => {
    clearTimeout(timer)
    if (document.visibilityState !== 'hidden') close ??= open()
    else if (close !== undefined) timer = setTimeout(shut, HIDDEN_MS)
  }
  document.addEventListener('visibilitychange', look)
  look()
  return () => {
    document.removeEventListener('visibilitychange', look)
    clearTimeout(timer)
    shut()
  }
}
