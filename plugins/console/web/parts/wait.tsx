// Shown while data is being read. The text appears after a second, since it would otherwise only flicker.
import { useEffect, useState } from 'preact/hooks'

export function Wait ({ what }: { readonly what: string }) {
  const [isLate, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => { setLate(true) }, 700)
    return () => { clearTimeout(timer) }
  }, [])
  return <p class='wait' role='status'>{isLate ? `Reading ${what} …` : ''}</p>
}
