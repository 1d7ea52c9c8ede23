#include "widgets/hosts/hosts_page.h"

#include <algorithm>

#include <QGridLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

QTreeWidget* table(QWidget* parent, const QStringList& columns, const QString& name)
{
    auto* tree = new QTreeWidget(parent);
    tree->setObjectName(u"boxed"_s);
    tree->setHeaderLabels(columns);
    tree->setRootIsDecorated(false);
    tree->setAccessibleName(name);
    tree->header()->setStretchLastSection(true);
    return tree;
}

void addField(QGridLayout* grid, const QString& title, QWidget* field, const QString& tooltip)
{
    const int row = grid->rowCount();
    grid->addWidget(makeFieldLabel(title, field, tooltip, grid->parentWidget()), row, 0,
                    qobject_cast<QPlainTextEdit*>(field) != nullptr ? Qt::AlignTop : Qt::Alignment());
    grid->addWidget(field, row, 1);
}

} // namespace

HostsPage::HostsPage(QWidget* parent) : QWidget(parent)
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 10, 0, 0);
    layout->setSpacing(7);
    auto* about = makeLabel(u"Computers that can record for you. They are reached by OpenSSH with your own "
                            "configuration, keys and known hosts."_s,
                            "secondary", this);
    about->setWordWrap(true);
    layout->addWidget(about);
    m_list = table(this, {u"Host"_s, u"SSH target"_s}, u"Hosts"_s);
    m_list->setMinimumHeight(84);
    layout->addWidget(m_list, 1);

    auto* buttons = new QHBoxLayout;
    const auto button = [&](const QString& text, const QString& tooltip, QBoxLayout* into) {
        auto* made = new QPushButton(text, this);
        made->setToolTip(tooltip);
        made->setAutoDefault(false);
        into->addWidget(made);
        return made;
    };
    m_test = button(u"Test"_s, u"Connects and lists what is there, and how to get what is missing"_s, buttons);
    m_install = button(u"Install"_s, u"Copies this program there, with the libraries it needs"_s, buttons);
    m_remove = button(u"Remove"_s, u"Forgets the host; what was installed there stays there"_s, buttons);
    buttons->addStretch(1);
    m_cancel = button(u"Cancel"_s, u"Stops waiting for the host"_s, buttons);
    layout->addLayout(buttons);
    m_message = makeLabel({}, "secondary", this, true);
    m_message->setWordWrap(true);
    layout->addWidget(m_message);
    m_findings = table(this, {u"What"_s, u"There"_s, u"What to do"_s}, u"What the test found"_s);
    m_findings->setMinimumHeight(120);
    m_findings->setWordWrap(true);
    layout->addWidget(m_findings, 2);

    layout->addWidget(makeLabel(u"Add or change a host"_s, "title", this));
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(14);
    grid->setVerticalSpacing(6);
    grid->setColumnStretch(1, 1);
    layout->addLayout(grid);
    m_name = new QLineEdit(this);
    m_name->setObjectName(u"hostName"_s);
    m_target = new QLineEdit(this);
    m_target->setObjectName(u"hostTarget"_s);
    m_target->setPlaceholderText(u"user@node1.example"_s);
    m_scratch = new QLineEdit(this);
    m_scratch->setPlaceholderText(u"a folder in your home there"_s);
    m_setup = new QPlainTextEdit(this);
    m_setup->setPlaceholderText(u"module load cuda"_s);
    m_setup->setTabChangesFocus(true);
    m_setup->setFixedHeight(3 * QFontMetrics(m_setup->font()).lineSpacing() + 10);
    addField(grid, u"Name"_s, m_name, u"The name under which it is offered; a host of the same name is replaced"_s);
    addField(grid, u"SSH target"_s, m_target,
             u"What you type after ssh: a host of your SSH configuration, user@host, or ssh://user@host:port"_s);
    addField(grid, u"Jobs in"_s, m_scratch,
             u"Where jobs keep their files there; on a cluster, a folder that its nodes share"_s);
    addField(
        grid, u"Setup lines"_s, m_setup,
        u"Shell commands to run there first, one per line. They come only from you: no file or host supplies them"_s);
    auto* end = new QHBoxLayout;
    end->addStretch(1);
    m_keep = button(u"Save host"_s, u"Adds the host, or replaces the one with this name"_s, end);
    layout->addLayout(end);

    connect(m_list, &QTreeWidget::currentItemChanged, this, &HostsPage::select);
    connect(m_test, &QPushButton::clicked, this,
            [this] { act(u"test"_s, u"Connecting to %1…"_s.arg(current().name)); });
    connect(m_install, &QPushButton::clicked, this,
            [this] { act(u"install"_s, u"Installing on %1…"_s.arg(current().name)); });
    connect(m_remove, &QPushButton::clicked, this, [this] { act(u"remove"_s, u"Removing %1…"_s.arg(current().name)); });
    connect(m_cancel, &QPushButton::clicked, this, [this] {
        m_job.drop();
        said(u"Cancelled."_s, false);
        refresh();
    });
    connect(m_keep, &QPushButton::clicked, this, &HostsPage::keep);
    for (QLineEdit* field : {m_name, m_target}) connect(field, &QLineEdit::textChanged, this, &HostsPage::refresh);
    showFindings({});
    refresh();
}

void HostsPage::setProgram(const QString& program)
{
    m_program = program;
    list();
}

QString HostsPage::message() const { return m_message->text(); }

void HostsPage::said(const QString& text, bool wrong)
{
    setRole(m_message, wrong ? "worse" : "secondary");
    m_message->setText(sentence(text));
    m_message->setVisible(!text.isEmpty());
}

void HostsPage::refresh()
{
    const bool busy = m_job.running();
    for (QPushButton* one : {m_test, m_install, m_remove}) one->setEnabled(!busy && !current().name.isEmpty());
    m_keep->setEnabled(!busy && !m_name->text().trimmed().isEmpty() && !m_target->text().trimmed().isEmpty());
    m_cancel->setVisible(busy);
}

HostEntry HostsPage::current() const
{
    const int row = m_list->indexOfTopLevelItem(m_list->currentItem());
    return row >= 0 && row < m_hosts.size() ? m_hosts[row] : HostEntry{};
}

void HostsPage::list()
{
    m_job.start(
        [program = m_program](const std::stop_token& stop) {
            return askProgram(program, {u"hosts"_s, u"list"_s, u"--json"_s}, stop);
        },
        [this](const ProgramAnswer& answer) {
            if (!answer.good())
                said(answer.remedy.isEmpty() ? answer.message : u"%1; %2"_s.arg(answer.message, answer.remedy), true);
            const QString chosen = current().name;
            m_hosts = hostsIn(answer.out);
            {
                const QSignalBlocker quiet(m_list);
                m_list->clear();
                for (const HostEntry& host : m_hosts) {
                    auto* item = new QTreeWidgetItem(m_list, {host.name, host.target});
                    item->setToolTip(0, host.setup.join(u'\n'));
                    if (host.name == chosen || m_list->topLevelItemCount() == 1) m_list->setCurrentItem(item);
                }
            }
            refresh();
        });
    refresh();
}

void HostsPage::select()
{
    const HostEntry host = current();
    if (!host.name.isEmpty()) {
        m_name->setText(host.name);
        m_target->setText(host.target);
        m_scratch->setText(host.scratch);
        m_setup->setPlainText(host.setup.join(u'\n'));
    }
    showFindings({});
    said({}, false);
    refresh();
}

void HostsPage::keep()
{
    const HostEntry host{m_name->text().trimmed(), m_target->text().trimmed(), m_scratch->text().trimmed(),
                         m_setup->toPlainText().split(u'\n', Qt::SkipEmptyParts)};
    m_job.start([program = m_program,
                 host](const std::stop_token& stop) { return askProgram(program, addArguments(host), stop); },
                [this, name = host.name](const ProgramAnswer& answer) {
                    if (answer.good())
                        said(u"%1 is saved. Test it to see what is there."_s.arg(name), false);
                    else
                        said(answer.remedy.isEmpty() ? answer.message : u"%1; %2"_s.arg(answer.message, answer.remedy),
                             true);
                    if (answer.good()) list();
                    refresh();
                });
    refresh();
}

void HostsPage::act(const QString& action, const QString& what)
{
    const QString name = current().name;
    if (name.isEmpty()) return;
    showFindings({});
    said(what, false);
    m_job.start(
        [program = m_program, action, name](const std::stop_token& stop) {
            return askProgram(program, {u"hosts"_s, action, u"--json"_s, u"--"_s, name}, stop);
        },
        [this, action, name](const ProgramAnswer& answer) {
            const auto findings = findingsIn(answer.out);
            showFindings(findings);
            const bool reached = answer.good() || !findings.isEmpty();
            if (!reached)
                said(answer.remedy.isEmpty() ? answer.message : u"%1; %2"_s.arg(answer.message, answer.remedy), true);
            else if (action == "test"_L1)
                said(answer.good() ? u"%1 can be used."_s.arg(name) : u"%1 can't be used yet."_s.arg(name),
                     !answer.good());
            else if (action == "install"_L1)
                said(u"Stagewright is installed on %1."_s.arg(name), false);
            else
                said({}, false);
            if (reached && action == "remove"_L1) list();
            refresh();
        });
    refresh();
}

void HostsPage::showFindings(const QVector<HostFinding>& findings)
{
    m_findings->clear();
    for (const HostFinding& one : findings) {
        auto* item =
            new QTreeWidgetItem(m_findings, {one.label, one.value.isEmpty() ? u"missing"_s : one.value, one.remedy});
        for (int column = 0; column < 3; ++column) item->setToolTip(column, item->text(column));
        if (one.needed && !one.remedy.isEmpty()) {
            QFont strong = item->font(0);
            strong.setWeight(QFont::DemiBold);
            item->setFont(0, strong);
        }
    }
    for (int column = 0; column < 2; ++column) m_findings->resizeColumnToContents(column);
    m_findings->setVisible(!findings.isEmpty());
}

} // namespace stagewright
