// Texts that would do harm wherever they became markup.
export const HOSTILE = ['<img src=x onerror=alert(1)>', '"><script>alert(2)</script>', '</pre><b>bold</b>', '<a href=javascript:alert(3)>x</a>'] as const
export const HOSTILE_LINE = HOSTILE.join(' ')
