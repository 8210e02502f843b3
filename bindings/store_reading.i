/* Java and C# read a store. Building, listing and pruning entries is for C, C++ and Python. */
%ignore rbcSegmentWriter;
%ignore rbcSegmentParams;
%ignore rbcStoreLockSegment;
%ignore rbcSegmentWriterAdd;
%ignore rbcSegmentWriterWrite;
%ignore rbcSegmentWriterPublish;
%ignore rbcStorePublishEntry;
%ignore rbcStoreItem;
%ignore rbcStoreList;
%ignore rbcPruneParams;
%ignore rbcPruneReport;
%ignore rbcStorePrune;
%rename("$ignore", regexmatch$name="^RBC_(PRUNE_|STORE_ITEM_|STORE_MAX_TRUSTED)") "";
%ignore rbcStoreParams::num_trusted_uids;
%ignore rbcStoreParams::trusted_uids;
%ignore rbcEntryRetain;
%ignore rbcEntryGetEpisodes;
