/*
 * Calls of objects that open arrays: the typemaps take the context from the first argument. This
 * follows declarations.i, which has the typemaps of the structs.
 */
%rename(rbc_accumulator_update) accumulatorUpdate;
%rename(rbc_accumulator_get_result) accumulatorGetResult;
%rename(rbc_live_push) livePush;
%rename(rbc_live_fuse) liveFuse;
%inline %{
static rbcStatus_t accumulatorUpdate(rbcContext_t context, struct rbcAccumulator* accumulator,
                                     const rbcTensor* values,
                                     const rbcAccumulatorUpdateParams* params) {
  (void)context;
  return rbcAccumulatorUpdate(accumulator, values, params);
}
static rbcStatus_t accumulatorGetResult(rbcContext_t context, struct rbcAccumulator* accumulator,
                                        const rbcStatisticsOutputs* outputs) {
  (void)context;
  return rbcAccumulatorGetResult(accumulator, outputs);
}
static rbcStatus_t livePush(rbcContext_t context, struct rbcLive* live, int32_t stream_index,
                            const rbcTensor* values, const rbcTensor* times,
                            const rbcTensor* arrivals) {
  (void)context;
  return rbcLivePush(live, stream_index, values, times, arrivals);
}
static rbcStatus_t liveFuse(rbcContext_t context, struct rbcLive* live,
                            const rbcTensor* query_times, const rbcOutput* out,
                            const rbcOutput* valid, const rbcOutput* ages,
                            const rbcLiveFuseParams* params) {
  (void)context;
  return rbcLiveFuse(live, query_times, out, valid, ages, params);
}
%}
