"""The catalogue: public MCP servers that are well known, in alphabetical order.

The addresses, the kinds of sign-in and the names of tools are those of their public documentation.
A tool is named here only if it clearly reads and does nothing else: what a server claims about its
own tools does not count. Tools that run what they are given (queries, code, other tools), that
cost money, or that return keys and passwords are left out. So are tools that fetch any address with
the user's account.
"""

from backburner.core.connections.catalogue_entry import CatalogueEntry
from backburner.core.connections.connection import AuthKind


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CATALOGUE = (
    CatalogueEntry(
        name="asana",
        title="Asana",
        url="https://mcp.asana.com/v2/mcp",
        purpose="Tasks, projects and goals in Asana.",
        docs="https://developers.asana.com/docs/integrating-with-asanas-mcp-server",
        own_client=True,
        before="Create an app of the type MCP in Asana's developer console.",
    ),
    CatalogueEntry(
        name="atlassian",
        title="Atlassian",
        url="https://mcp.atlassian.com/v1/mcp",
        purpose="Jira issues, Confluence pages and Compass components.",
        docs="https://github.com/atlassian/atlassian-mcp-server",
        before="An administrator of your site may have to allow this server's address.",
        reads=_names(
            "atlassianUserInfo getAccessibleAtlassianResources getConfluenceCommentChildren"
            " getConfluencePage getConfluencePageDescendants getConfluencePageFooterComments"
            " getConfluencePageInlineComments getConfluenceSpaces getIssueLinkTypes getJiraIssue"
            " getJiraIssueRemoteIssueLinks getJiraIssueTypeMetaWithFields"
            " getJiraProjectIssueTypesMetadata getPagesInConfluenceSpace"
            " getTransitionsForJiraIssue getVisibleJiraProjects lookupJiraAccountId"
            " searchConfluenceUsingCql searchJiraIssuesUsingJql"
        ),
    ),
    CatalogueEntry(
        name="canva",
        title="Canva",
        url="https://mcp.canva.com/mcp",
        purpose="Find, make and export designs in Canva.",
        docs="https://www.canva.dev/docs/connect/canva-mcp-server-setup/",
    ),
    CatalogueEntry(
        name="cloudflare",
        title="Cloudflare",
        url="https://mcp.cloudflare.com/mcp",
        purpose="The whole API of Cloudflare, through two tools that run code.",
        docs="https://github.com/cloudflare/mcp",
    ),
    CatalogueEntry(
        name="cloudflare-bindings",
        title="Cloudflare Workers bindings",
        url="https://bindings.mcp.cloudflare.com/mcp",
        purpose="Workers, KV, R2, D1 and Hyperdrive in your Cloudflare account.",
        docs="https://github.com/cloudflare/mcp-server-cloudflare",
        reads=_names(
            "d1_database_get d1_databases_list hyperdrive_config_get hyperdrive_configs_list"
            " kv_namespace_get kv_namespaces_list r2_bucket_get r2_buckets_list workers_get_worker"
            " workers_get_worker_code workers_list"
        ),
    ),
    CatalogueEntry(
        name="cloudflare-browser",
        title="Cloudflare Browser Run",
        url="https://browser.mcp.cloudflare.com/mcp",
        purpose="Fetch pages with a browser at Cloudflare, as text or as a picture.",
        docs="https://github.com/cloudflare/mcp-server-cloudflare",
        reads=_names(
            "get_url_html_content get_url_links get_url_markdown get_url_pdf get_url_screenshot"
            " get_url_snapshot list_browser_sessions scrape_url_elements"
        ),
        discloses=_names(
            "get_url_html_content get_url_links get_url_markdown get_url_pdf get_url_screenshot"
            " get_url_snapshot scrape_url_elements"
        ),
    ),
    CatalogueEntry(
        name="cloudflare-docs",
        title="Cloudflare documentation",
        url="https://docs.mcp.cloudflare.com/mcp",
        purpose="Search the documentation of Cloudflare.",
        docs="https://github.com/cloudflare/mcp-server-cloudflare",
        auth=AuthKind.NONE,
        reads=_names("search_cloudflare_documentation"),
        discloses=_names("search_cloudflare_documentation"),
    ),
    CatalogueEntry(
        name="cloudflare-observability",
        title="Cloudflare observability",
        url="https://observability.mcp.cloudflare.com/mcp",
        purpose="Logs and metrics of your Workers.",
        docs="https://github.com/cloudflare/mcp-server-cloudflare",
        reads=_names("observability_keys observability_values query_worker_observability"),
    ),
    CatalogueEntry(
        name="context7",
        title="Context7",
        url="https://mcp.context7.com/mcp",
        purpose="Current documentation of programming libraries.",
        docs="https://github.com/upstash/context7",
        auth=AuthKind.NONE,
        reads=_names("query-docs resolve-library-id"),
        discloses=_names("query-docs resolve-library-id"),
    ),
    CatalogueEntry(
        name="deepwiki",
        title="DeepWiki",
        url="https://mcp.deepwiki.com/mcp",
        purpose="Questions about public GitHub repositories.",
        docs="https://docs.devin.ai/work-with-devin/deepwiki-mcp",
        auth=AuthKind.NONE,
        reads=_names("ask_question read_wiki_contents read_wiki_structure"),
        discloses=_names("ask_question read_wiki_contents read_wiki_structure"),
    ),
    CatalogueEntry(
        name="exa",
        title="Exa",
        url="https://mcp.exa.ai/mcp",
        purpose="Search the web, and read pages.",
        docs="https://docs.exa.ai/reference/exa-mcp",
        auth=AuthKind.NONE,
        reads=_names("web_fetch_exa web_search_exa"),
        discloses=_names("web_fetch_exa web_search_exa"),
    ),
    CatalogueEntry(
        name="figma",
        title="Figma",
        url="https://mcp.figma.com/mcp",
        purpose="Designs, components and variables in Figma files.",
        docs="https://developers.figma.com/docs/figma-mcp-server/",
        before="Figma signs in only clients that it has approved.",
        reads=_names(
            "get_code_connect_map get_design_context get_figjam get_libraries get_metadata"
            " get_screenshot get_variable_defs search_design_system whoami"
        ),
    ),
    CatalogueEntry(
        name="fireflies",
        title="Fireflies",
        url="https://api.fireflies.ai/mcp",
        purpose="Transcripts and summaries of meetings.",
        docs="https://guide.fireflies.ai/articles/8272956938-learn-about-the-fireflies-mcp-server-model-context-protocol",
    ),
    CatalogueEntry(
        name="github",
        title="GitHub",
        url="https://api.githubcopilot.com/mcp/",
        purpose="Repositories, issues, pull requests and workflows on GitHub.",
        docs="https://github.com/github/github-mcp-server",
        auth=AuthKind.HEADER,
        header="Authorization",
        header_prefix="Bearer ",
        before="Create a personal access token with the permissions that agents should have.",
        reads=_names(
            "actions_get actions_list get_code_quality_finding get_code_scanning_alert get_commit"
            " get_dependabot_alert get_discussion get_discussion_comments get_file_blame"
            " get_file_contents get_gist get_global_security_advisory get_job_logs get_label"
            " get_latest_release get_me get_notification_details get_release_by_tag"
            " get_repository_tree get_tag get_team_members get_teams issue_dependency_read"
            " issue_read list_branches list_code_scanning_alerts list_commits"
            " list_dependabot_alerts list_discussion_categories list_discussions list_gists"
            " list_global_security_advisories list_issue_fields list_issue_types list_issues"
            " list_label list_notifications list_org_repository_security_advisories"
            " list_pull_requests list_releases list_repository_collaborators"
            " list_repository_security_advisories list_starred_repositories list_tags"
            " projects_get projects_list pull_request_read search_code search_commits"
            " search_issues search_orgs search_pull_requests search_repositories search_users"
        ),
    ),
    CatalogueEntry(
        name="gitlab",
        title="GitLab",
        url="https://gitlab.com/api/v4/mcp",
        purpose="Projects, issues and merge requests on GitLab.com.",
        docs="https://docs.gitlab.com/user/gitlab_duo/model_context_protocol/mcp_server/",
    ),
    CatalogueEntry(
        name="gmail",
        title="Gmail",
        url="https://gmailmcp.googleapis.com/mcp/v1",
        purpose="Search and read mail, write drafts and set labels in Gmail.",
        docs="https://developers.google.com/workspace/guides/configure-mcp-servers",
        own_client=True,
        before="Enable the Gmail API in a Google Cloud project, and create an OAuth client there.",
        reads=_names("get_message get_thread list_drafts list_labels search_threads"),
    ),
    CatalogueEntry(
        name="google-calendar",
        title="Google Calendar",
        url="https://calendarmcp.googleapis.com/mcp/v1",
        purpose="Events and free times in Google Calendar.",
        docs="https://developers.google.com/workspace/guides/configure-mcp-servers",
        own_client=True,
        before=(
            "Enable the Google Calendar API in a Google Cloud project, and create an OAuth client"
            " there."
        ),
        reads=_names("get_event list_calendars list_events suggest_time"),
    ),
    CatalogueEntry(
        name="google-drive",
        title="Google Drive",
        url="https://drivemcp.googleapis.com/mcp/v1",
        purpose="Find, read and create files in Google Drive.",
        docs="https://developers.google.com/workspace/guides/configure-mcp-servers",
        own_client=True,
        before=(
            "Enable the Google Drive API in a Google Cloud project, and create an OAuth client"
            " there."
        ),
        reads=_names(
            "download_file_content get_file_metadata get_file_permissions list_recent_files"
            " read_file_content search_files"
        ),
    ),
    CatalogueEntry(
        name="hubspot",
        title="HubSpot",
        url="https://mcp.hubspot.com",
        purpose="Contacts, companies, deals and tickets in HubSpot.",
        docs="https://developers.hubspot.com/docs/apps/developer-platform/build-apps/integrate-with-hubspot-mcp-server",
        own_client=True,
        before="Create an MCP auth app in the development section of your HubSpot account.",
    ),
    CatalogueEntry(
        name="hugging-face",
        title="Hugging Face",
        url="https://huggingface.co/mcp",
        purpose="Models, datasets, papers and documentation on Hugging Face.",
        docs="https://github.com/huggingface/hf-mcp-server",
        auth=AuthKind.HEADER,
        header="Authorization",
        header_prefix="Bearer ",
        before="Create an access token in the settings of your account.",
        reads=_names(
            "hf_doc_fetch hf_doc_search hf_whoami hub_repo_details hub_repo_search paper_search"
            " space_search"
        ),
        discloses=_names("hf_doc_fetch hf_doc_search"),
    ),
    CatalogueEntry(
        name="intercom",
        title="Intercom",
        url="https://mcp.intercom.com/mcp",
        purpose="Conversations and contacts in Intercom.",
        docs="https://developers.intercom.com/docs/guides/mcp",
        before="The workspace has to be hosted in the United States.",
        reads=_names(
            "fetch get_contact get_conversation search search_contacts search_conversations"
        ),
    ),
    CatalogueEntry(
        name="linear",
        title="Linear",
        url="https://mcp.linear.app/mcp",
        purpose="Issues, projects and documents in Linear.",
        docs="https://linear.app/docs/mcp",
        reads=_names(
            "get_document get_issue get_issue_status get_project get_team get_user list_comments"
            " list_cycles list_documents list_issue_labels list_issue_statuses list_issues"
            " list_project_labels list_projects list_teams list_users search_documentation"
        ),
    ),
    CatalogueEntry(
        name="microsoft-learn",
        title="Microsoft Learn",
        url="https://learn.microsoft.com/api/mcp",
        purpose="Search and read the documentation of Microsoft.",
        docs="https://github.com/MicrosoftDocs/mcp",
        auth=AuthKind.NONE,
        reads=_names("microsoft_code_sample_search microsoft_docs_fetch microsoft_docs_search"),
        discloses=_names("microsoft_code_sample_search microsoft_docs_fetch microsoft_docs_search"),
    ),
    CatalogueEntry(
        name="miro",
        title="Miro",
        url="https://mcp.miro.com/",
        purpose="Boards and diagrams in Miro.",
        docs="https://developers.miro.com/docs/miro-mcp",
    ),
    CatalogueEntry(
        name="monday",
        title="monday.com",
        url="https://mcp.monday.com/mcp",
        purpose="Boards, items and updates in monday.com.",
        docs="https://github.com/mondaycom/mcp",
        reads=_names(
            "get_board_activity get_board_info get_board_items_page get_board_schema get_updates"
            " list_users_and_teams list_workspaces workspace_info"
        ),
    ),
    CatalogueEntry(
        name="neon",
        title="Neon",
        url="https://mcp.neon.tech/mcp",
        purpose="Postgres projects and branches at Neon.",
        docs="https://github.com/neondatabase/mcp-server-neon",
        reads=_names(
            "compare_database_schema describe_branch describe_project describe_table_schema"
            " get_database_tables list_branch_computes list_log_field_values list_log_fields"
            " list_organizations list_projects list_shared_projects list_slow_queries"
        ),
    ),
    CatalogueEntry(
        name="notion",
        title="Notion",
        url="https://mcp.notion.com/mcp",
        purpose="Pages, databases and comments in Notion.",
        docs="https://developers.notion.com/docs/mcp",
        reads=_names(
            "notion-fetch notion-get-comments notion-get-self notion-get-teams notion-get-user"
            " notion-get-users notion-search"
        ),
    ),
    CatalogueEntry(
        name="paypal",
        title="PayPal",
        url="https://mcp.paypal.com/mcp",
        purpose="Invoices, orders and transactions in PayPal.",
        docs="https://www.paypal.ai/",
    ),
    CatalogueEntry(
        name="prisma",
        title="Prisma Postgres",
        url="https://mcp.prisma.io/mcp",
        purpose="Postgres databases at Prisma.",
        docs="https://github.com/prisma/mcp",
    ),
    CatalogueEntry(
        name="sentry",
        title="Sentry",
        url="https://mcp.sentry.dev/mcp",
        purpose="Errors, traces and releases in Sentry.",
        docs="https://docs.sentry.io/product/sentry-mcp/",
        reads=_names(
            "find_organizations find_projects find_releases find_teams get_event_stacktrace"
            " get_issue_activity get_issue_breadcrumbs get_issue_details get_issue_tag_values"
            " get_release_details get_replay_details get_sentry_resource get_span_details"
            " get_trace_details search_events search_issue_events search_issues"
            " search_sentry_tools whoami"
        ),
    ),
    CatalogueEntry(
        name="slack",
        title="Slack",
        url="https://mcp.slack.com/mcp",
        purpose="Search, read and write messages in Slack.",
        docs="https://docs.slack.dev/ai/slack-mcp-server",
        own_client=True,
        before="Create a Slack app, and let an administrator of the workspace approve it.",
        reads=_names(
            "slack_read_channel slack_read_thread slack_read_user_profile slack_search_channels"
            " slack_search_public slack_search_public_and_private slack_search_users"
        ),
    ),
    CatalogueEntry(
        name="square",
        title="Square",
        url="https://mcp.squareup.com/mcp",
        purpose="Payments, orders and the catalogue of a Square seller.",
        docs="https://developer.squareup.com/docs/mcp",
    ),
    CatalogueEntry(
        name="stripe",
        title="Stripe",
        url="https://mcp.stripe.com",
        purpose="Customers, invoices, payments and subscriptions in Stripe.",
        docs="https://docs.stripe.com/mcp",
        reads=_names(
            "fetch_stripe_resources get_stripe_account_info list_coupons list_customers"
            " list_disputes list_invoices list_payment_intents list_prices list_products"
            " list_subscriptions retrieve_balance search_stripe_documentation"
            " search_stripe_resources"
        ),
    ),
    CatalogueEntry(
        name="supabase",
        title="Supabase",
        url="https://mcp.supabase.com/mcp",
        purpose="Projects, databases and functions at Supabase.",
        docs="https://github.com/supabase-community/supabase-mcp",
        reads=_names(
            "generate_typescript_types get_advisors get_cost get_edge_function get_logs"
            " get_organization get_project get_project_url get_storage_config list_branches"
            " list_edge_functions list_extensions list_migrations list_organizations"
            " list_projects list_storage_buckets list_tables search_docs"
        ),
    ),
    CatalogueEntry(
        name="tavily",
        title="Tavily",
        url="https://mcp.tavily.com/mcp/",
        purpose="Search the web, and read pages.",
        docs="https://github.com/tavily-ai/tavily-mcp",
        auth=AuthKind.HEADER,
        header="Authorization",
        header_prefix="Bearer ",
        before="Create an API key at Tavily.",
        reads=_names("tavily_crawl tavily_extract tavily_map tavily_search"),
        discloses=_names("tavily_crawl tavily_extract tavily_map tavily_search"),
    ),
    CatalogueEntry(
        name="vercel",
        title="Vercel",
        url="https://mcp.vercel.com",
        purpose="Projects, deployments and logs at Vercel.",
        docs="https://vercel.com/docs/mcp/vercel-mcp",
        before="Vercel signs in only clients that it has approved.",
        reads=_names(
            "get_deployment get_deployment_build_logs get_project get_runtime_logs list_deployments"
            " list_projects list_teams search_vercel_documentation"
        ),
    ),
    CatalogueEntry(
        name="zapier",
        title="Zapier",
        url="https://mcp.zapier.com/api/v1/connect",
        purpose="Actions in the apps that you have connected to Zapier.",
        docs="https://docs.zapier.com/mcp/home",
        before="Choose at mcp.zapier.com which actions agents may use.",
    ),
)
