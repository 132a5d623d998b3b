// What a stranger says is the size of something.
import t from 'tap'
import { sumOfSizes } from '../../../../core/library/oci/sizes.ts'

t.test('sizes are added up unless one of them, or the sum, is none', async (t) => {
  t.equal(sumOfSizes([]), 0)
  t.equal(sumOfSizes([1, 0, 2]), 3)
  t.equal(sumOfSizes([Number.MAX_SAFE_INTEGER]), Number.MAX_SAFE_INTEGER)
  for (const sizes of [[1e308, 1e308], [1e308], [Number.MAX_SAFE_INTEGER, 1], [Infinity], [NaN], [-1], [5, -1], [0.5]]) t.equal(sumOfSizes(sizes), undefined, String(sizes))
})
