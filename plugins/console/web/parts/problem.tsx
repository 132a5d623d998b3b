// Why something cannot be shown.
export function Problem ({ text, onRetry }: { readonly text: string, readonly onRetry?: () => void }) {
  return <div class='problem' role='alert'><p>{text}</p>{onRetry !== undefined && <button type='button' class='button plain' onClick={onRetry}>Try again</button>}</div>
}
