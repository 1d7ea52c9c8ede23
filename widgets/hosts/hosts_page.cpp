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

#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

QTreeWidget* table(QWidget* parent, const QStringList& columns, const QString& name)
{
    auto* tree = new QTreeWidget(parent);
    tree->setObjectName(QStringLiteral("boxed"));
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
    auto* about = makeLabel(tr("Computers that can record for you. They are reached by OpenSSH with your own "
                               "configuration, keys and known hosts."),
                            "secondary", this);
    about->setWordWrap(true);
    layout->addWidget(about);
    m_list = table(this, {tr("Host"), tr("SSH target")}, tr("Hosts"));
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
    m_test = button(tr("Test"), tr("Connects and lists what is there, and how to get what is missing"), buttons);
    m_install = button(tr("Install"), tr("Copies this program there, with the libraries it needs"), buttons);
    m_remove = button(tr("Remove"), tr("Forgets the host; what was installed there stays there"), buttons);
    buttons->addStretch(1);
    m_cancel = button(tr("Cancel"), tr("Stops waiting for the host"), buttons);
    layout->addLayout(buttons);
    m_message = makeLabel({}, "secondary", this, true);
    m_message->setWordWrap(true);
    layout->addWidget(m_message);
    m_findings = table(this, {tr("What"), tr("There"), tr("What to do")}, tr("What the test found"));
    m_findings->setMinimumHeight(120);
    m_findings->setWordWrap(true);
    layout->addWidget(m_findings, 2);

    layout->addWidget(makeLabel(tr("Add or change a host"), "title", this));
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(14);
    grid->setVerticalSpacing(6);
    grid->setColumnStretch(1, 1);
    layout->addLayout(grid);
    m_name = new QLineEdit(this);
    m_name->setObjectName(QStringLiteral("hostName"));
    m_target = new QLineEdit(this);
    m_target->setObjectName(QStringLiteral("hostTarget"));
    m_target->setPlaceholderText(tr("user@node1.example"));
    m_scratch = new QLineEdit(this);
    m_scratch->setPlaceholderText(tr("a folder in your home there"));
    m_setup = new QPlainTextEdit(this);
    m_setup->setPlaceholderText(tr("module load cuda"));
    m_setup->setTabChangesFocus(true);
    m_setup->setFixedHeight(3 * QFontMetrics(m_setup->font()).lineSpacing() + 10);
    addField(grid, tr("Name"), m_name, tr("The name under which it is offered; a host of the same name is replaced"));
    addField(grid, tr("SSH target"), m_target,
             tr("What you type after ssh: a host of your SSH configuration, user@host, or ssh://user@host:port"));
    addField(grid, tr("Jobs in"), m_scratch,
             tr("Where jobs keep their files there; on a cluster, a folder that its nodes share"));
    addField(
        grid, tr("Setup lines"), m_setup,
        tr("Shell commands to run there first, one per line. They come only from you: no file or host supplies them"));
    auto* end = new QHBoxLayout;
    end->addStretch(1);
    m_keep = button(tr("Save host"), tr("Adds the host, or replaces the one with this name"), end);
    layout->addLayout(end);

    connect(m_list, &QTreeWidget::currentItemChanged, this, &HostsPage::select);
    connect(m_test, &QPushButton::clicked, this,
            [this] { act(QStringLiteral("test"), tr("Connecting to %1…").arg(current().name)); });
    connect(m_install, &QPushButton::clicked, this,
            [this] { act(QStringLiteral("install"), tr("Installing on %1…").arg(current().name)); });
    connect(m_remove, &QPushButton::clicked, this,
            [this] { act(QStringLiteral("remove"), tr("Removing %1…").arg(current().name)); });
    connect(m_cancel, &QPushButton::clicked, this, [this] {
        m_job.drop();
        said(tr("Cancelled."), false);
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
            return askProgram(program, {QStringLiteral("hosts"), QStringLiteral("list"), QStringLiteral("--json")},
                              stop);
        },
        [this](const ProgramAnswer& answer) {
            if (!answer.good())
                said(answer.remedy.isEmpty() ? answer.message : tr("%1; %2").arg(answer.message, answer.remedy), true);
            const QString chosen = current().name;
            m_hosts = hostsIn(answer.out);
            {
                const QSignalBlocker quiet(m_list);
                m_list->clear();
                for (const HostEntry& host : m_hosts) {
                    auto* item = new QTreeWidgetItem(m_list, {host.name, host.target});
                    item->setToolTip(0, host.setup.join(QLatin1Char('\n')));
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
        m_setup->setPlainText(host.setup.join(QLatin1Char('\n')));
    }
    showFindings({});
    said({}, false);
    refresh();
}

void HostsPage::keep()
{
    const HostEntry host{m_name->text().trimmed(), m_target->text().trimmed(), m_scratch->text().trimmed(),
                         m_setup->toPlainText().split(QLatin1Char('\n'), Qt::SkipEmptyParts)};
    m_job.start([program = m_program,
                 host](const std::stop_token& stop) { return askProgram(program, addArguments(host), stop); },
                [this, name = host.name](const ProgramAnswer& answer) {
                    if (answer.good())
                        said(tr("%1 is saved. Test it to see what is there.").arg(name), false);
                    else
                        said(answer.remedy.isEmpty() ? answer.message : tr("%1; %2").arg(answer.message, answer.remedy),
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
            return askProgram(
                program, {QStringLiteral("hosts"), action, QStringLiteral("--json"), QStringLiteral("--"), name}, stop);
        },
        [this, action, name](const ProgramAnswer& answer) {
            const auto findings = findingsIn(answer.out);
            showFindings(findings);
            const bool reached = answer.good() || !findings.isEmpty();
            if (!reached)
                said(answer.remedy.isEmpty() ? answer.message : tr("%1; %2").arg(answer.message, answer.remedy), true);
            else if (action == QLatin1String("test"))
                said(answer.good() ? tr("%1 can be used.").arg(name) : tr("%1 can't be used yet.").arg(name),
                     !answer.good());
            else if (action == QLatin1String("install"))
                said(tr("Stagewright is installed on %1.").arg(name), false);
            else
                said({}, false);
            if (reached && action == QLatin1String("remove")) list();
            refresh();
        });
    refresh();
}

void HostsPage::showFindings(const QVector<HostFinding>& findings)
{
    m_findings->clear();
    for (const HostFinding& one : findings) {
        auto* item =
            new QTreeWidgetItem(m_findings, {one.label, one.value.isEmpty() ? tr("missing") : one.value, one.remedy});
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
