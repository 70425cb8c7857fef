"""Allowlist of SQL functions with a result of one row, or of a fixed size for any number of rows.

The lists are closed: a function that is not listed may collect rows, as `query_to_xml()` and the
functions of users can. A name is sqlglot's key of a class; in NAMED_... it is the name of a
function for which sqlglot has no class.
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Aggregates that make one row of a query without GROUP BY in every dialect that has them. ANY_VALUE
# is not among them: MySQL returns it for each row.
TOTALS = _names("""
    approxdistinct approxquantile argmax argmin avg corr count countif covarpop covarsamp kurtosis
    logicaland logicalor max median min mode percentilecont percentiledisc quantile regravgx
    regravgy regrcount regrintercept regrr2 regrslope skewness stddev stddevpop stddevsamp sum
    variance variancepop
""")
NAMED_TOTALS = _names("bool_and bool_or every total")
_VALUES_OF_A_ROW = _names("""
    anyvalue argmax argmin first firstvalue lag last lastvalue lead mode nthvalue
""")
# Aggregates and window functions that return the value of one row, or a number.
PICKS = _VALUES_OF_A_ROW | _names("cumedist denserank grouping ntile percentrank rank rownumber")
# One of their arguments selects a part of the values: a list of parts gives a list of results.
QUANTILES = _names("approxquantile percentilecont percentiledisc quantile")
# A row with several of these has the values of several rows.
VALUES_OF_A_ROW = _VALUES_OF_A_ROW | QUANTILES | _names("max median min")

# Functions of one argument, which PostgreSQL calls for `x.name` too. Source: pg_proc.
# These collect rows, make rows or read files:
CALLED_AS_COLUMNS = _names("""
    aclexplode array_agg json_agg json_agg_strict json_array_elements json_array_elements_text
    json_each json_each_text json_object_keys json_to_recordset jsonb_agg jsonb_agg_strict
    jsonb_array_elements jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys
    jsonb_to_recordset lo_get pg_extension_update_paths pg_get_multixact_members
    pg_get_publication_tables pg_ls_dir pg_ls_replslotdir pg_ls_tmpdir pg_mcv_list_items
    pg_options_to_table pg_partition_ancestors pg_partition_tree pg_read_binary_file pg_read_file
    pg_snapshot_xip pg_stat_get_activity pg_stat_get_progress_info pg_stat_get_subscription
    pg_tablespace_databases range_agg range_intersect_agg ts_debug ts_stat ts_token_type
    txid_snapshot_xip unnest xmlagg
""")
# These make one value of a whole row:
OF_WHOLE_ROWS = _names("""
    concat hstore json_build_array json_build_object jsonb_build_array jsonb_build_object
    quote_literal quote_nullable record_out record_send row_to_json to_json to_jsonb
""")

# Their value for one row is no longer than their arguments, but for a number or a name.
KEEPING = _names("and case cast coalesce exists if nullif or trycast xor")
# They return a date or a time, whatever their arguments are.
DATES = _names("""
    adddate date dateadd datesub datetime datetimeadd datetimesub julianday time timestampadd
    timestampsub tsordsadd tsordstodate unixepoch
""")
OF_ONE_ROW = KEEPING | _names("""
    abs acos addmonths array arraycontainedby arraycontains arraycontainsall arrayfirst arraylast
    arraymax arraymin arrayoverlaps arrayposition arraysize arrayslice arraysum arraytostring ascii
    asin atan atan2 bitlength bitwisecount bytelength cbrt ceil chr collate columns concat concatws
    contains convert converttimezone cos cot currentcatalog currentdatabase currentdate
    currentdatetime currentrole currentschema currenttime currenttimestamp currenttimezone
    currentuser currentversion date dateadd datebin datediff datefromparts datestrtodate datesub
    datetime datetimeadd datetimediff datetimesub datetimetrunc datetodatestr datetrunc day dayname
    dayofmonth dayofweek dayofweekiso dayofyear decode degrees elt encode endswith exp extract floor
    format frombase64 fromjson greatest hex hour initcap isarray isinf isnan isnullvalue
    jarowinklersimilarity jsonarray jsonarraycontains jsonbcontains jsonbcontainsanytopkeys
    jsonbcontainstopkey jsonbexists jsonbextract jsonbextractscalar jsonbpathexists jsonexists
    jsonextract jsonextractarray jsonextractscalar jsonformat jsonkeys jsonobject jsonremove jsonset
    jsontype justifydays justifyhours justifyinterval lastday least left length levenshtein ln
    localtime localtimestamp log lower makeinterval mapkeys mapvalues matchagainst md5 md5digest
    minute month monthname monthsbetween negative normalize numbertostr nvl2 objectid overlay pad
    parsejson parsetime pi pow quarter radians rand regexpcount regexpextract regexpfullmatch
    regexpilike regexpinstr regexplike regexpreplace regexpsubstr replace reverse right round
    safedivide second sessionuser sha sha1digest sha2 sha2digest sign sin soundex split splitpart
    sqrt startswith stdistance stpoint stringtoarray strposition strtodate strtotime strtounix
    struct structextract stuff substring substringindex tan time timeadd timediff timefromparts
    timestamp timestampadd timestampdiff timestampfromparts timestampsub timestamptrunc
    timestrtodate timestrtotime timesub timetostr timetounix timetrunc tobase64 tochar todays tomap
    tonumber translate trim trunc tsordsadd tsordsdiff tsordstodate tsordstodatestr tsordstodatetime
    tsordstotime tsordstotimestamp typeof unhex unicode unixdate unixmicros unixmillis unixseconds
    unixtostr unixtotime upper utcdate utctime utctimestamp uuid week weekofyear widthbucket year
    yearofweek yearofweekiso
""")
NAMED_OF_ONE_ROW = _names("""
    adddate age array_length array_lower array_upper bin bit_count bm25 btrim cardinality changes
    char_length character_length charindex choose clock_timestamp coalesce col_description col_name
    connection_id conv crc32 current_database current_schema current_setting datalength date
    date_bin date_format date_part datename datepart datetime db_name decode digest div encode
    eomonth epoch epoch_ms field find_in_set format_type found_rows freetext from_days from_unixtime
    gcd gen_random_uuid getutcdate glob has_column_privilege has_database_privilege
    has_schema_privilege has_table_privilege hash highlight host host_name ifnull iif inet6_aton
    inet_aton inet_client_addr inet_ntoa inet_server_addr instr isdate isfinite isjson isnull
    isnumeric json_array json_array_length json_build_array json_build_object json_contains
    json_contains_path json_depth json_extract json_insert json_keys json_length json_object
    json_overlaps json_patch json_pretty json_quote json_replace json_search json_set json_string
    json_structure json_typeof json_unquote json_valid json_value jsonb jsonb_array_length
    jsonb_build_array jsonb_build_object jsonb_path_exists jsonb_path_match jsonb_pretty jsonb_set
    jsonb_strip_nulls jsonb_typeof julianday last_insert_id last_insert_rowid lcase len length
    likelihood likely list_avg list_contains list_count list_distinct list_first list_last list_max
    list_min list_position list_sort list_sum list_value locate log10 log2 ltrim make_date make_time
    make_timestamp make_timestamptz makedate mid millisecond mod nanosecond newid now num_nonnulls
    num_nulls obj_description object_definition object_name object_schema_name octet_length patindex
    period_add pg_backend_pid pg_column_size pg_database_size pg_encoding_to_char
    pg_get_constraintdef pg_get_expr pg_get_function_arguments pg_get_function_identity_arguments
    pg_get_function_result pg_get_functiondef pg_get_indexdef pg_get_ruledef pg_get_serial_sequence
    pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_indexes_size pg_is_in_recovery
    pg_postmaster_start_time pg_relation_filenode pg_relation_size pg_size_pretty
    pg_table_is_visible pg_table_size pg_total_relation_size pg_typeof plainto_tsquery position
    prefix printf quote quote_ident quote_literal random regexp_like regexp_match row row_count
    row_to_json rtrim scale schema_name scope_identity sec_to_time servername serverproperty
    shobj_description similarity snippet sqlite_version st_area st_asgeojson st_astext st_contains
    st_dwithin st_intersects st_length st_within st_x st_y starts_with str str_to_date strcmp
    strftime strlen struct_pack subdate suffix suser_name suser_sname sysdatetime sysutcdatetime
    time time_bucket time_to_sec timediff timezone to_ascii to_json to_jsonb to_regclass to_seconds
    to_timestamp to_tsquery to_tsvector total_changes trim_array truncate try_convert try_parse
    ts_headline ts_rank ts_rank_cd txid_current type_name ucase unaccent unix_timestamp unixepoch
    unlikely user user_name uuid version websearch_to_tsquery weekday word_similarity xxhash64
    yearweek
""")

# Aggregates of one dialect: in another one, these names may be those of users' functions.
NAMED_OF_FIXED_SIZE = _names("checksum_agg product stdevp var varp")

# They make rows of one value of a row; only a LIMIT bounds these.
UNNESTS = _names("explode posexplode unnest")
NAMED_UNNESTS = _names("""
    json_array_elements json_array_elements_text json_object_keys jsonb_array_elements
    jsonb_array_elements_text jsonb_object_keys regexp_matches regexp_split_to_table
    string_to_table
""")
# They make rows of numbers or of one value, in a FROM.
READS_CSV = _names("readcsv read_csv_auto")
# Its parameters that do not set where a value ends, but for a separator: a line always ends one.
# Source: duckdb.org/docs/data/csv/overview.
CSV_PARAMETERS = _names("""
    all_varchar auto_detect auto_type_candidates columns compression dateformat decimal_separator
    delim dtypes encoding filename header hive_partitioning ignore_errors names normalize_names
    null_padding nullstr sample_size sep skip timestampformat types union_by_name
""")
TABLES = _names("explodinggenerateseries generateseries openjson readcsv readparquet") | UNNESTS
NAMED_TABLES = NAMED_UNNESTS | _names("""
    duckdb_columns duckdb_constraints duckdb_databases duckdb_functions duckdb_indexes
    duckdb_schemas duckdb_settings duckdb_tables duckdb_views generate_series generate_subscripts
    json_each json_each_text json_tree jsonb_each jsonb_each_text pragma_foreign_key_list
    pragma_index_info pragma_index_list pragma_table_info pragma_table_list pragma_table_xinfo range
    read_csv_auto string_split
""")

ANYWHERE = OF_ONE_ROW | TOTALS | PICKS | UNNESTS
NAMED_ANYWHERE = NAMED_OF_ONE_ROW | NAMED_OF_FIXED_SIZE | NAMED_TOTALS | NAMED_UNNESTS
